/** An archive with one program, the same bytes for the same program. */
import { crc32, deflateRawSync } from 'node:zlib'

const DEFLATED = 8
/** Of Unix, and the version of the format that has deflation. */
const MADE_BY = (3 << 8) | 20
const NEEDED = 20
/** 1980-01-01, the first day that the format knows. */
const DATE = (1 << 5) | 1
const EXECUTABLE = 0o100755

/** ZIP (PKWARE's note 6.3) with one executable file. */
export function zipOf(name: string, content: Buffer): Buffer {
  const packed = deflateRawSync(content, { level: 9 })
  const nameBytes = Buffer.from(name)
  const common = Buffer.alloc(26)
  common.writeUInt16LE(NEEDED, 0)
  common.writeUInt16LE(DEFLATED, 4)
  common.writeUInt16LE(DATE, 8)
  common.writeUInt32LE(crc32(content), 10)
  common.writeUInt32LE(packed.length, 14)
  common.writeUInt32LE(content.length, 18)
  common.writeUInt16LE(nameBytes.length, 22)
  const local = Buffer.concat([Buffer.from('PK\u0003\u0004'), common, nameBytes, packed])
  const rest = Buffer.alloc(14)
  rest.writeUInt32LE(EXECUTABLE * 0x1_0000, 6)
  const madeBy = Buffer.alloc(2)
  madeBy.writeUInt16LE(MADE_BY)
  const central = Buffer.concat([Buffer.from('PK\u0001\u0002'), madeBy, common, rest, nameBytes])
  const end = Buffer.alloc(22)
  end.write('PK\u0005\u0006', 'latin1')
  end.writeUInt16LE(1, 8)
  end.writeUInt16LE(1, 10)
  end.writeUInt32LE(central.length, 12)
  end.writeUInt32LE(local.length, 16)
  return Buffer.concat([local, central, end])
}
