// Package settings is ingot-manager's configuration file: read strictly, defaulted, validated before anything starts.
package settings
