/** Writes a cpio archive in the "newc" format that the Linux kernel unpacks as its initial file system. Deterministic:
 *  owner 0, time 0. */

export type ArchiveEntry =
  | { readonly path: string; readonly kind: 'folder'; readonly mode?: number }
  | { readonly path: string; readonly kind: 'file'; readonly content: Buffer; readonly mode?: number }
  | { readonly path: string; readonly kind: 'link'; readonly target: string }
  | {
      readonly path: string
      readonly kind: 'character-device'
      readonly major: number
      readonly minor: number
      readonly mode?: number
    }

const TYPE_BITS = { folder: 0o040000, file: 0o100000, link: 0o120000, 'character-device': 0o020000 }
const DEFAULT_MODES = { folder: 0o755, file: 0o644, link: 0o777, 'character-device': 0o600 }
const TRAILER = 'TRAILER!!!'

/** Entries in the given order (folders before their content); paths without a leading slash. */
export function writeCpio(entries: readonly ArchiveEntry[]): Buffer {
  const records = entries.map((entry, index) => record(entry, index + 1))
  return Buffer.concat([
    ...records,
    recordBytes({ inode: 0, mode: 0, major: 0, minor: 0, name: TRAILER, content: Buffer.alloc(0) }),
  ])
}

function record(entry: ArchiveEntry, inode: number): Buffer {
  const mode = TYPE_BITS[entry.kind] | ((entry.kind === 'link' ? undefined : entry.mode) ?? DEFAULT_MODES[entry.kind])
  const content =
    entry.kind === 'file' ? entry.content : entry.kind === 'link' ? Buffer.from(entry.target) : Buffer.alloc(0)
  const [major, minor] = entry.kind === 'character-device' ? [entry.major, entry.minor] : [0, 0]
  return recordBytes({ inode, mode, major, minor, name: entry.path, content })
}

interface RecordFields {
  readonly inode: number
  readonly mode: number
  readonly major: number
  readonly minor: number
  readonly name: string
  readonly content: Buffer
}

function recordBytes({ inode, mode, major, minor, name, content }: RecordFields): Buffer {
  const nameBytes = Buffer.from(`${name}\0`)
  const links = 1
  // inode, mode, uid, gid, links, time, size, device, special device, length of the name, checksum (unused)
  const fields = [inode, mode, 0, 0, links, 0, content.length, 0, 0, major, minor, nameBytes.length, 0]
  const header = Buffer.from(`070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`)
  return Buffer.concat([padded(Buffer.concat([header, nameBytes])), padded(content)])
}

const padded = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])
