package uki

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/ingot-dev/ingot/imagebuilder/extent"
)

// Offsets within a PE file, from Microsoft's "PE Format": the offset of the PE signature in the file, then from the signature the fields of the file
// header and of the optional header, which has the same places up to CheckSum in PE32 and PE32+.
const (
	offsetSignature = 0x3c

	fileSections  = 6
	optional      = 24
	sizeOfImage   = optional + 56
	sizeOfHeaders = optional + 60
	checkSum      = optional + 64
	// directories is where the data directories of PE32+ begin; certificates is the one of the signature.
	directories  = optional + 112
	certificates = directories + 4*8

	sectionHeaderSize = 40
	// readableData is IMAGE_SCN_CNT_INITIALIZED_DATA | IMAGE_SCN_MEM_READ.
	readableData = 0x40000040
)

// program is an EFI program to which sections are added.
type program struct {
	machine uint16
	header  []byte
	// content is what follows the header in the file.
	content []byte
	// signature is the offset of the PE signature, nextHeader that of the next section's header.
	signature, nextHeader int
	sections              uint16
	inMemory, inFile      uint32
	// file and memory are where the next section begins.
	file, memory int64
}

// parse reads the stub.
func parse(stub []byte) (*program, error) {
	file, err := pe.NewFile(bytes.NewReader(stub))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	header, isPE32Plus := file.OptionalHeader.(*pe.OptionalHeader64)
	if !isPE32Plus {
		return nil, errors.New("it is no 64-bit EFI program")
	}
	p := &program{machine: file.Machine, inMemory: header.SectionAlignment, inFile: header.FileAlignment, sections: uint16(len(file.Sections))}
	for _, alignment := range []uint32{p.inMemory, p.inFile} {
		if alignment == 0 || alignment&(alignment-1) != 0 || alignment > 1<<20 {
			return nil, fmt.Errorf("its alignment is %d", alignment)
		}
	}
	first, end := int64(len(stub)), int64(0)
	for _, s := range file.Sections {
		if s.Size > 0 {
			first = min(first, int64(s.Offset))
			end = max(end, int64(s.Offset)+int64(s.Size))
		}
		p.memory = max(p.memory, int64(s.VirtualAddress)+int64(max(s.VirtualSize, s.Size)))
	}
	if int64(header.SizeOfHeaders) > first || end > int64(len(stub)) {
		return nil, errors.New("its sections are not behind its header, or the file is cut off")
	}
	p.signature = int(binary.LittleEndian.Uint32(stub[offsetSignature:]))
	p.nextHeader = p.signature + optional + int(file.SizeOfOptionalHeader) + sectionHeaderSize*len(file.Sections)
	// What is behind the sections belongs to no section: symbols, which need no place in memory.
	p.header, p.content = bytes.Clone(stub[:first]), bytes.Clone(stub[first:end])
	p.content = append(p.content, make([]byte, p.aligned(end)-end)...)
	p.file, p.memory = p.aligned(end), align(p.memory, p.inMemory)
	return p, nil
}

// align returns the size rounded up.
func align(size int64, to uint32) int64 { return (size + int64(to) - 1) / int64(to) * int64(to) }

// aligned returns the size rounded up to the alignment in the file.
func (p *program) aligned(size int64) int64 { return align(size, p.inFile) }

// add adds a section with the data, which is appended to the content.
func (p *program) add(content *extent.Content, name string, data []byte) {
	p.addSection(name, int64(len(data)), int64(len(data)))
	content.AppendBytes(data)
	content.PadTo(p.aligned(content.Size()))
}

// addSection adds the header of a section that takes so many bytes in memory and in the file.
func (p *program) addSection(name string, memory, size int64) {
	var header [sectionHeaderSize]byte
	copy(header[:8], name)
	for i, value := range []int64{memory, p.memory, p.aligned(size), p.file} {
		binary.LittleEndian.PutUint32(header[8+4*i:], uint32(value))
	}
	binary.LittleEndian.PutUint32(header[36:], readableData)
	if p.nextHeader+sectionHeaderSize <= len(p.header) {
		copy(p.header[p.nextHeader:], header[:])
	}
	p.nextHeader += sectionHeaderSize
	p.sections++
	p.file += p.aligned(size)
	p.memory += align(memory, p.inMemory)
}

// finish returns the header with all sections.
func (p *program) finish() ([]byte, error) {
	if p.nextHeader > len(p.header) {
		return nil, fmt.Errorf("its header has no room for %d sections", p.sections)
	}
	if p.memory > math.MaxInt32 || p.file > math.MaxInt32 {
		return nil, errors.New("with kernel and initrd it would have more than 2 GiB")
	}
	at := p.header[p.signature:]
	binary.LittleEndian.PutUint16(at[fileSections:], p.sections)
	// The symbols of the stub were left out.
	clear(at[12:20])
	binary.LittleEndian.PutUint32(at[sizeOfImage:], uint32(p.memory))
	binary.LittleEndian.PutUint32(at[sizeOfHeaders:], uint32(len(p.header)))
	// EFI does not check the sum; a wrong one would be worse than none. A signature would be wrong.
	clear(at[checkSum : checkSum+4])
	clear(at[certificates : certificates+8])
	return p.header, nil
}

// memoryOf returns how much memory the kernel takes when it is started, and refuses one that the stub cannot start.
func memoryOf(kernel *io.SectionReader, machine uint16) (int64, error) {
	file, err := pe.NewFile(io.NewSectionReader(kernel, 0, kernel.Size()))
	if err != nil {
		return 0, fmt.Errorf("it is no EFI program (CONFIG_EFI_STUB): %w", err)
	}
	defer file.Close()
	header, isPE32Plus := file.OptionalHeader.(*pe.OptionalHeader64)
	if !isPE32Plus || file.Machine != machine {
		return 0, fmt.Errorf("it is for the machine %#x, and the EFI stub for %#x", file.Machine, machine)
	}
	return int64(header.SizeOfImage), nil
}
