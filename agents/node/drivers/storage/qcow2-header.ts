/** References to other files in the header of a qcow2 file. A guest that broke out of QEMU can write its disk's header,
 *  and programs of the host that open the disk would open the named files. The format is in QEMU's
 *  docs/interop/qcow2.txt. */
import { open, realpath } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

const MAGIC = 'QFI\xfb'
const VERSION_AT = 4
const BACKING_OFFSET_AT = 8
const BACKING_LENGTH_AT = 16
const INCOMPATIBLE_FEATURES_AT = 72
const HEADER_BYTES = 80
/** The first version with feature bits. */
const FEATURES_VERSION = 3
const BACKING_BYTES_MAXIMUM = 1_023
/** Feature bit: the data are in another file. */
const EXTERNAL_DATA = 4n

interface Qcow2Header {
  /** Absolute path of the backing file, if the reference names a file. */
  readonly backing: string | undefined
  readonly hasExternalData: boolean
}

/** Undefined when it is not a qcow2 file. */
async function readHeader(path: string): Promise<Qcow2Header | undefined> {
  const file = await open(path, 'r')
  try {
    const header = Buffer.alloc(HEADER_BYTES)
    await file.read(header, 0, header.length, 0)
    if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) return undefined
    const hasFeatures = header.readUInt32BE(VERSION_AT) >= FEATURES_VERSION
    const features = hasFeatures ? header.readBigUInt64BE(INCOMPATIBLE_FEATURES_AT) : 0n
    const length = header.readUInt32BE(BACKING_LENGTH_AT)
    const name = Buffer.alloc(Math.min(length, BACKING_BYTES_MAXIMUM))
    await file.read(name, 0, name.length, Number(header.readBigUInt64BE(BACKING_OFFSET_AT)))
    return {
      backing: length === 0 ? undefined : resolve(dirname(path), name.toString()),
      hasExternalData: (features & EXTERNAL_DATA) !== 0n,
    }
  } finally {
    await file.close()
  }
}

/** Real path of the backing file; undefined when there is none. */
export async function backingOf(path: string): Promise<string | undefined> {
  const backing = (await readHeader(path))?.backing
  return backing === undefined ? undefined : realpath(backing)
}

/** Throws when a program that opens the file would also open another file outside of the folders. */
export async function mustOpenNothingElse(path: string, folders: readonly string[]): Promise<void> {
  const header = await readHeader(path)
  const refuse = (why: string): never => {
    throw new Error(`${path} is not the disk that was made here: ${why}`)
  }
  if (header === undefined) return refuse('it is no qcow2 file')
  if (header.hasExternalData) refuse('its data are said to be in another file')
  if (header.backing === undefined) return
  const backing = await realpath(header.backing).catch(() => refuse('what it is an overlay of is not there'))
  const isTemplate = await Promise.all(folders.map(async (folder) => backing.startsWith(`${await realpath(folder)}/`)))
  if (!isTemplate.includes(true)) refuse('it is an overlay of what is no template')
}
