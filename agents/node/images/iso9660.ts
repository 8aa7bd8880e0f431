/** Writes a small ISO 9660 image: one folder of files, as the NoCloud data source of cloud-init reads it.
 *  Deterministic: all times are zero.
 *  No Rock Ridge or Joliet: Linux shows plain names in lower case, and NoCloud's names are lower case. */

const SECTOR = 2048
/** 16 empty sectors, the volume descriptor, its terminator, two path tables, the root folder; then the files. */
const LAYOUT = { volume: 16, terminator: 17, pathTableLittle: 18, pathTableBig: 19, root: 20, files: 21 }
const ROOT_RECORD_BYTES = 34
/** The root folder is kept to one sector. */
const FILES_MAXIMUM = 16

/** `label`: upper-case letters and digits, at most 32. Names: lower-case letters, digits, "-", at most 28 characters.
 */
export function writeIso(label: string, files: Readonly<Record<string, Buffer>>): Buffer {
  const names = Object.keys(files).sort()
  if (names.length > FILES_MAXIMUM) throw new Error('too many files for one sector')
  let sector = LAYOUT.files
  const placed = names.map((name) => {
    const content = files[name] ?? Buffer.alloc(0)
    const at = sector
    sector += Math.max(1, Math.ceil(content.length / SECTOR))
    return { name, content, sector: at }
  })
  const image = Buffer.alloc(sector * SECTOR)
  const put = (at: number, bytes: Buffer) => void bytes.copy(image, at * SECTOR)
  put(LAYOUT.volume, volumeDescriptor(label, sector))
  put(LAYOUT.terminator, Buffer.concat([Buffer.of(255), Buffer.from('CD001'), Buffer.of(1)]))
  put(LAYOUT.pathTableLittle, pathTable('little'))
  put(LAYOUT.pathTableBig, pathTable('big'))
  put(
    LAYOUT.root,
    Buffer.concat([
      directoryRecord(Buffer.of(0), LAYOUT.root, SECTOR, true),
      directoryRecord(Buffer.of(1), LAYOUT.root, SECTOR, true),
      ...placed.map(({ name, content, sector: at }) =>
        directoryRecord(Buffer.from(`${name.toUpperCase()}.;1`), at, content.length, false),
      ),
    ]),
  )
  for (const { content, sector: at } of placed) put(at, content)
  return image
}

/** ECMA-119 8.4. Numbers are stored in both byte orders. */
function volumeDescriptor(label: string, sectors: number): Buffer {
  const bytes = Buffer.alloc(SECTOR)
  const text = (offset: number, length: number, value: string) =>
    void bytes.write(value.padEnd(length, ' '), offset, 'latin1')
  bytes[0] = 1
  bytes.write('CD001', 1)
  bytes[6] = 1
  text(8, 32, 'LINUX')
  text(40, 32, label)
  both32(sectors).copy(bytes, 80)
  both16(1).copy(bytes, 120)
  both16(1).copy(bytes, 124)
  both16(SECTOR).copy(bytes, 128)
  both32(PATH_TABLE_BYTES).copy(bytes, 132)
  bytes.writeUInt32LE(LAYOUT.pathTableLittle, 140)
  bytes.writeUInt32BE(LAYOUT.pathTableBig, 148)
  directoryRecord(Buffer.of(0), LAYOUT.root, SECTOR, true).copy(bytes, 156)
  text(190, 623, '')
  for (const offset of [813, 830, 847, 864]) bytes.write('0'.repeat(16), offset)
  bytes[881] = 1
  return bytes
}

const PATH_TABLE_BYTES = 10

/** ECMA-119 9.4, for the root folder only. */
function pathTable(order: 'little' | 'big'): Buffer {
  const bytes = Buffer.alloc(PATH_TABLE_BYTES)
  bytes[0] = 1
  if (order === 'little') bytes.writeUInt32LE(LAYOUT.root, 2)
  else bytes.writeUInt32BE(LAYOUT.root, 2)
  if (order === 'little') bytes.writeUInt16LE(1, 6)
  else bytes.writeUInt16BE(1, 6)
  return bytes
}

/** ECMA-119 9.1. */
function directoryRecord(identifier: Buffer, sector: number, length: number, isFolder: boolean): Buffer {
  const size = ROOT_RECORD_BYTES - 1 + identifier.length
  const bytes = Buffer.alloc(size + (size % 2))
  bytes[0] = bytes.length
  both32(sector).copy(bytes, 2)
  both32(length).copy(bytes, 10)
  bytes[25] = isFolder ? 2 : 0
  both16(1).copy(bytes, 28)
  bytes[32] = identifier.length
  identifier.copy(bytes, 33)
  return bytes
}

function both16(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt16LE(value, 0)
  bytes.writeUInt16BE(value, 2)
  return bytes
}

function both32(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt32LE(value, 0)
  bytes.writeUInt32BE(value, 4)
  return bytes
}
