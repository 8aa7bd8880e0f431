/** Reads the format of an image from its first bytes, without a program that would follow references in them. Accepts
 *  raw and qcow2 that depend on no other file; everything else is refused by name. Pure. */

/** Enough for the header of qcow2 with its extensions. */
export const HEADER_BYTES = 4096
/** Bytes at the end of a file; some formats have their header there. */
export const TRAILER_BYTES = 512

export type ImageFormat = 'raw' | 'qcow2'

export interface ImageHeader {
  readonly format: ImageFormat
  /** Size that the guest sees. */
  readonly virtualBytes: bigint
}

/** The image is not accepted, for a reason that its owner can act on. */
export class ImageRefused extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ImageRefused'
  }
}

const SECTOR_BYTES = 512n
const QCOW_MAGIC = 0x514649fb
/** Starts of formats that would otherwise count as raw disks. */
const OTHER_FORMATS: readonly (readonly [name: string, start: Buffer])[] = [
  ['VMDK', Buffer.from('KDMV')],
  ['VMDK', Buffer.from('COWD')],
  ['VMDK', Buffer.from('# Disk DescriptorFile')],
  ['VHDX', Buffer.from('vhdxfile')],
  ['VHD', Buffer.from('conectix')],
  ['QED', Buffer.from('QED\0')],
  ['VDI', Buffer.from('<<< ')],
  ['LUKS', Buffer.from('LUKS\xba\xbe', 'latin1')],
  ['Parallels', Buffer.from('WithoutFreeSpace')],
  ['Parallels', Buffer.from('WithouFreSpacExt')],
  ['gzip', Buffer.from([0x1f, 0x8b])],
  ['xz', Buffer.from('\xfd7zXZ\0', 'latin1')],
  ['bzip2', Buffer.from('BZh')],
  ['zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd])],
  ['lz4', Buffer.from([0x04, 0x22, 0x4d, 0x18])],
  ['lzma', Buffer.from([0x5d, 0x00, 0x00])],
  ['lzip', Buffer.from('LZIP')],
  ['lzop', Buffer.from('\x89LZO\0', 'latin1')],
  ['compress', Buffer.from([0x1f, 0x9d])],
  ['zip', Buffer.from('PK\x03\x04')],
  ['zip', Buffer.from('PK\x05\x06')],
  ['7z', Buffer.from('7z\xbc\xaf\x27\x1c', 'latin1')],
  ['RAR', Buffer.from('Rar!\x1a\x07', 'latin1')],
  ['WIM', Buffer.from('MSWIM\0\0\0')],
  ['an Android sparse image', Buffer.from([0x3a, 0xff, 0x26, 0xed])],
  ['cpio', Buffer.from('07070')], // the next digit is 1, 2 or 7, depending on its variant
  ['cpio', Buffer.from([0xc7, 0x71])],
  ['cpio', Buffer.from([0x71, 0xc7])],
  ['ar', Buffer.from('!<arch>\n')],
  ['squashfs', Buffer.from('hsqs')],
  ['squashfs', Buffer.from('sqsh')],
  ['cramfs', Buffer.from([0x45, 0x3d, 0xcd, 0x28])],
  ['an ELF program', Buffer.from('\x7fELF', 'latin1')],
  ['XML or HTML', Buffer.from('<')],
]
/** The same for the start of their last 512 bytes. */
const OTHER_TRAILERS: readonly (readonly [name: string, start: Buffer])[] = [
  ['VHD', Buffer.from('conectix')],
  ['DMG', Buffer.from('koly')],
]
const TAR = { headerBytes: 512, checksum: { at: 148, bytes: 8 }, magic: { at: 257, text: 'ustar' } } as const

/** `start` holds the first HEADER_BYTES of the file, or all of it; `end` holds its last TRAILER_BYTES if it has more.
 *  Throws ImageRefused. */
export function readImageHeader(start: Buffer, fileBytes: bigint, end: Buffer = Buffer.alloc(0)): ImageHeader {
  if (start.length >= 4 && start.readUInt32BE(0) === QCOW_MAGIC)
    return { format: 'qcow2', virtualBytes: readQcow2(start) }
  const other = isTar(start)
    ? 'a tar archive, as OVA files are'
    : (named(OTHER_FORMATS, start) ?? named(OTHER_TRAILERS, end))
  if (other !== undefined) throw new ImageRefused(`The file is ${other}. Only raw and qcow2 images are taken.`)
  if (fileBytes === 0n || fileBytes % SECTOR_BYTES !== 0n)
    throw new ImageRefused('The file is neither qcow2 nor a raw disk, whose size is a multiple of 512 bytes.')
  return { format: 'raw', virtualBytes: fileBytes }
}

const named = (formats: typeof OTHER_FORMATS, bytes: Buffer): string | undefined =>
  formats.find(([, begin]) => bytes.subarray(0, begin.length).equals(begin))?.[0]

/** Checks the magic; older archives have only the checksum of their first header. */
function isTar(start: Buffer): boolean {
  const { headerBytes, checksum, magic } = TAR
  if (start.length < headerBytes) return false
  if (start.toString('latin1', magic.at, magic.at + magic.text.length) === magic.text) return true
  const [from, to] = [checksum.at, checksum.at + checksum.bytes]
  const stated = /^ *([0-7]{2,7})[ \0]/.exec(start.toString('latin1', from, to))?.[1]
  const sum = start
    .subarray(0, headerBytes)
    .reduce((total, byte, at) => total + (at >= from && at < to ? 0x20 : byte), 0)
  return stated !== undefined && Number.parseInt(stated, 8) === sum
}

/** Offsets of the fields, as docs/interop/qcow2.txt of QEMU lays them out. */
const FIELD = {
  version: 4,
  backingOffset: 8,
  clusterBits: 20,
  virtualBytes: 24,
  encryption: 32,
  incompatible: 72,
  headerLength: 100,
} as const
const VERSION_2_BYTES = 72
const VERSION_3_BYTES = 104
const CLUSTER_BITS = { least: 9, most: 21 }

const INCOMPATIBLE_FEATURES: readonly (readonly [bit: bigint, what: string])[] = [
  [1n << 0n, 'It was not closed properly.'],
  [1n << 1n, 'It is marked as corrupt.'],
  [1n << 2n, 'Its data are in another file.'],
]
/** Compression type and extended L2 entries: they only define how the file stores its data. */
const HARMLESS_FEATURES = (1n << 3n) | (1n << 4n)

const EXTENSION = { end: 0, backingFormat: 0xe2792aca, dataFile: 0x44415441, encryption: 0x0537be77 } as const

function readQcow2(start: Buffer): bigint {
  const version = start.length >= 8 ? start.readUInt32BE(FIELD.version) : 0
  const length = version === 2 ? VERSION_2_BYTES : VERSION_3_BYTES
  if ((version !== 2 && version !== 3) || start.length < length)
    throw new ImageRefused('The header of the qcow2 image is not of version 2 or 3.')
  if (start.readBigUInt64BE(FIELD.backingOffset) !== 0n) throw new ImageRefused('The image has a backing file.')
  if (start.readUInt32BE(FIELD.encryption) !== 0) throw new ImageRefused('The image is encrypted.')
  const clusterBits = start.readUInt32BE(FIELD.clusterBits)
  if (clusterBits < CLUSTER_BITS.least || clusterBits > CLUSTER_BITS.most)
    throw new ImageRefused('The header of the qcow2 image is damaged.')
  if (version === 3) requireKnownFeatures(start.readBigUInt64BE(FIELD.incompatible))
  const extensionsAt = version === 2 ? VERSION_2_BYTES : start.readUInt32BE(FIELD.headerLength)
  requireNoFiles(start, extensionsAt)
  const virtualBytes = start.readBigUInt64BE(FIELD.virtualBytes)
  if (virtualBytes === 0n || virtualBytes % SECTOR_BYTES !== 0n)
    throw new ImageRefused('The size of the disk in the image is no multiple of 512 bytes.')
  return virtualBytes
}

function requireKnownFeatures(features: bigint): void {
  const fault = INCOMPATIBLE_FEATURES.find(([bit]) => (features & bit) !== 0n)
  if (fault !== undefined) throw new ImageRefused(`The image cannot be used. ${fault[1]}`)
  const known = INCOMPATIBLE_FEATURES.reduce((sum, [bit]) => sum | bit, HARMLESS_FEATURES)
  if ((features & ~known) !== 0n) throw new ImageRefused('The image uses features of qcow2 that are not known here.')
}

/** Refuses extensions that name files or keys, regardless of the fields. */
function requireNoFiles(start: Buffer, from: number): void {
  const damaged = () => new ImageRefused('The header extensions of the qcow2 image are damaged.')
  for (let at = from; ; ) {
    if (at < VERSION_2_BYTES || at + 8 > start.length) throw damaged()
    const [kind, length] = [start.readUInt32BE(at), start.readUInt32BE(at + 4)]
    if (kind === EXTENSION.end) return
    if (kind === EXTENSION.backingFormat) throw new ImageRefused('The image has a backing file.')
    if (kind === EXTENSION.dataFile) throw new ImageRefused('The image cannot be used. Its data are in another file.')
    if (kind === EXTENSION.encryption) throw new ImageRefused('The image is encrypted.')
    at += 8 + Math.ceil(length / 8) * 8
  }
}

/** The checked part of the output of `qemu-img info --output=json`. */
export interface ImageInformation {
  readonly 'backing-filename'?: string
  readonly encrypted?: boolean
  readonly 'format-specific'?: { readonly data?: { readonly 'data-file'?: string; readonly corrupt?: boolean } }
}

/** The second check: throws ImageRefused for properties that qemu-img finds and the header did not show. */
export function requireIndependent(information: ImageInformation): void {
  const data = information['format-specific']?.data
  if (information['backing-filename'] !== undefined) throw new ImageRefused('The image has a backing file.')
  if (data?.['data-file'] !== undefined)
    throw new ImageRefused('The image cannot be used. Its data are in another file.')
  if (information.encrypted === true) throw new ImageRefused('The image is encrypted.')
  if (data?.corrupt === true) throw new ImageRefused('The image is damaged.')
}
