# Prints for each set of root device hints the names of the disks that fit, in JSON. Arguments: the sets of hints and the disks, in JSON.
import json, logging, sys

from ironic_lib import utils

logging.disable()
sets, disks = map(json.loads, sys.argv[1:])
print(json.dumps([[disk["name"] for disk in utils.find_devices_by_hints(disks, hints)] for hints in sets]))
