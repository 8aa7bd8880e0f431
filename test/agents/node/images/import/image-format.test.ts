/** What is taken, and what is refused, by the first bytes of a file. */
import { describe, expect, test } from 'vitest'
import {
  HEADER_BYTES,
  type ImageInformation,
  ImageRefused,
  readImageHeader,
  requireIndependent,
} from '../../../../../agents/node/images/import/image-format.ts'

interface Fields {
  readonly version?: number
  readonly backingOffset?: bigint
  readonly clusterBits?: number
  readonly virtualBytes?: bigint
  readonly encryption?: number
  readonly incompatible?: bigint
  readonly extensions?: readonly (readonly [kind: number, data: Buffer])[]
}

function qcow2({
  version = 3,
  backingOffset = 0n,
  clusterBits = 16,
  virtualBytes = 1n << 30n,
  encryption = 0,
  incompatible = 0n,
  extensions = [],
}: Fields = {}): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.write('QFI\xfb', 'latin1')
  header.writeUInt32BE(version, 4)
  header.writeBigUInt64BE(backingOffset, 8)
  header.writeUInt32BE(clusterBits, 20)
  header.writeBigUInt64BE(virtualBytes, 24)
  header.writeUInt32BE(encryption, 32)
  if (version > 2) {
    header.writeBigUInt64BE(incompatible, 72)
    header.writeUInt32BE(104, 100)
  }
  let at = version > 2 ? 104 : 72
  for (const [kind, data] of extensions) {
    header.writeUInt32BE(kind, at)
    header.writeUInt32BE(data.length, at + 4)
    data.copy(header, at + 8)
    at += 8 + Math.ceil(data.length / 8) * 8
  }
  return header
}
const read = (start: Buffer, bytes = BigInt(start.length)) => readImageHeader(start, bytes)
const FEATURE_NAMES = 0x6803f857

describe('an image is taken', () => {
  test.each<[string, Buffer]>([
    ['of version 3', qcow2()],
    ['of version 2', qcow2({ version: 2 })],
    ['with compressed clusters of another kind, and extended L2 entries', qcow2({ incompatible: 0b11000n })],
    ['with extensions that name no file', qcow2({ extensions: [[FEATURE_NAMES, Buffer.alloc(100)]] })],
  ])('qcow2 %s', (_name, start) => {
    expect(read(start)).toEqual({ format: 'qcow2', virtualBytes: 1n << 30n })
  })

  test('raw, which is as large as its file', () => {
    expect(read(Buffer.alloc(HEADER_BYTES), 1n << 34n)).toEqual({ format: 'raw', virtualBytes: 1n << 34n })
  })
})

describe('an image is refused', () => {
  test.each<[string, Buffer, string]>([
    ['a backing file', qcow2({ backingOffset: 0x200n }), 'backing file'],
    ['the format of a backing file', qcow2({ extensions: [[0xe2792aca, Buffer.from('raw')]] }), 'backing file'],
    ['an external data file', qcow2({ incompatible: 0b100n }), 'in another file'],
    ['the name of a data file', qcow2({ extensions: [[0x44415441, Buffer.from('/etc/shadow')]] }), 'in another file'],
    ['a name behind another extension', secondExtension(), 'in another file'],
    ['the old encryption', qcow2({ encryption: 1 }), 'encrypted'],
    ['LUKS', qcow2({ encryption: 2 }), 'encrypted'],
    ['a key', qcow2({ extensions: [[0x0537be77, Buffer.alloc(16)]] }), 'encrypted'],
    ['a mark that it is open', qcow2({ incompatible: 1n }), 'not closed'],
    ['a mark of corruption', qcow2({ incompatible: 2n }), 'corrupt'],
    ['features of the future', qcow2({ incompatible: 1n << 40n }), 'not known'],
    ['an unknown version', qcow2({ version: 4 }), 'version 2 or 3'],
    ['the first version', qcow2({ version: 1 }), 'version 2 or 3'],
    ['clusters of no size', qcow2({ clusterBits: 0 }), 'damaged'],
    ['clusters of 4 GiB', qcow2({ clusterBits: 32 }), 'damaged'],
    ['no disk', qcow2({ virtualBytes: 0n }), 'multiple of 512'],
    ['half a sector', qcow2({ virtualBytes: 1000n }), 'multiple of 512'],
    ['extensions without end', qcow2({ extensions: [[FEATURE_NAMES, Buffer.alloc(3984)]] }), 'damaged'],
    ['an end within the header', qcow2().subarray(0, 90), 'version 2 or 3'],
  ])('for %s', (_name, start, message) => {
    expect(() => read(start)).toThrow(ImageRefused)
    expect(() => read(start)).toThrow(message)
  })

  test('for extensions that start within the header', () => {
    const header = qcow2()
    header.writeUInt32BE(0, 100)
    expect(() => read(header)).toThrow('damaged')
  })

  test.each([
    ['VMDK', 'KDMV'],
    ['VMDK', '# Disk DescriptorFile\n'],
    ['VHDX', 'vhdxfile'],
    ['VHD', 'conectix'],
    ['QED', 'QED\0'],
    ['VDI', '<<< Oracle VM VirtualBox Disk Image >>>'],
    ['LUKS', 'LUKS\xba\xbe'],
    ['gzip', '\x1f\x8b\x08'],
    ['xz', '\xfd7zXZ\0'],
    ['bzip2', 'BZh9'],
    ['zstd', '\x28\xb5\x2f\xfd'],
    ['zip', 'PK\x03\x04'],
    ['HTML', '<!doctype html>'],
    ['lz4', '\x04\x22\x4d\x18'],
    ['lzma', '\x5d\0\0\x80'],
    ['7z', '7z\xbc\xaf\x27\x1c'],
    ['RAR', 'Rar!\x1a\x07\x01'],
    ['cpio', '070701'],
    ['cpio', '070707'],
    ['cpio', '\xc7\x71'],
    ['squashfs', 'hsqs'],
    ['squashfs', 'sqsh'],
    ['ELF', '\x7fELF'],
    ['Android sparse', '\x3a\xff\x26\xed'],
  ])('for being %s', (name, begin) => {
    const start = Buffer.alloc(HEADER_BYTES)
    start.write(begin, 'latin1')
    expect(() => read(start)).toThrow(name)
  })

  test('for being a tar archive, as an OVA is', () => {
    const start = tar()
    start.write('ustar\0', 257)
    expect(() => read(start)).toThrow('tar archive')
  })

  test('for being a tar archive of the first kind, which has no magic', () => {
    expect(() => read(tar())).toThrow('tar archive')
  })

  test('for the end of its file, which says it is a VHD of fixed size', () => {
    const end = Buffer.alloc(512)
    end.write('conectix')
    expect(() => readImageHeader(Buffer.alloc(HEADER_BYTES), 1n << 30n, end)).toThrow('VHD')
  })

  test.each([0n, 511n, 1000n])('for being a file of %s bytes, which is no disk', (bytes) => {
    expect(() => read(Buffer.alloc(Number(bytes)), bytes)).toThrow('multiple of 512')
  })
})

describe('what qemu-img says of an image', () => {
  test.each<[string, ImageInformation]>([
    ['has a backing file', { 'backing-filename': '/etc/passwd' }],
    ['in another file', { 'format-specific': { data: { 'data-file': '/etc/shadow' } } }],
    ['encrypted', { encrypted: true }],
    ['damaged', { 'format-specific': { data: { corrupt: true } } }],
  ])('%s: it is refused', (message, information) => {
    expect(() => requireIndependent(information)).toThrow(message)
  })

  test('nothing of that: it is taken', () => {
    expect(() => requireIndependent({ 'format-specific': { data: { corrupt: false } } })).not.toThrow()
  })
})

/** A header with its checksum. */
function tar(): Buffer {
  const start = Buffer.alloc(HEADER_BYTES)
  start.write('machine.ovf')
  start.write('0000644', 100)
  start.fill(' ', 148, 156)
  const sum = start.subarray(0, 512).reduce((total, byte) => total + byte, 0)
  start.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return start
}

function secondExtension(): Buffer {
  return qcow2({
    extensions: [
      [FEATURE_NAMES, Buffer.alloc(48)],
      [0x44415441, Buffer.from('/etc/shadow')],
    ],
  })
}
