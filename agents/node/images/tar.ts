/** Archives of plain files, hard links and folders (POSIX ustar), owned by root, with time 0. Pure. */

export interface TarFile {
  /** At most 100 bytes; the name of a folder ends with a slash. */
  readonly name: string
  readonly content: Buffer
  readonly mode?: number
  /** Name of an earlier file that this is a hard link to; then it has no content. */
  readonly linkTo?: string
}

const BLOCK = 512
const NAME_BYTES = 100

export function tarOf(files: readonly TarFile[]): Buffer {
  const parts = files.flatMap((file) => {
    const rest = file.content.length % BLOCK
    return [headerOf(file), file.content, Buffer.alloc(rest === 0 ? 0 : BLOCK - rest)]
  })
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)])
}

function headerOf({ name, content, mode = 0o644, linkTo = '' }: TarFile): Buffer {
  for (const each of [name, linkTo])
    if (Buffer.byteLength(each) > NAME_BYTES) throw new Error(`${each} is too long for an archive`)
  const header = Buffer.alloc(BLOCK)
  const octal = (value: number, at: number, bytes: number) =>
    header.write(`${value.toString(8).padStart(bytes - 1, '0')}\0`, at, 'latin1')
  header.write(name, 0, 'utf8')
  octal(mode, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(content.length, 124, 12)
  octal(0, 136, 12)
  // For the checksum its own field counts as spaces. Type 0 is a plain file, 1 a hard link, 5 a folder.
  header.write(`        ${name.endsWith('/') ? 5 : linkTo === '' ? 0 : 1}`, 148, 'latin1')
  header.write(linkTo, 157, 'utf8')
  header.write('ustar\x0000', 257, 'latin1')
  const sum = header.reduce((all, byte) => all + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}
