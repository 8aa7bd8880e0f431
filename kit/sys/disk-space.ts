/** How much room a file system has. */
import { statfs } from 'node:fs/promises'

/** Bytes that may still be written to the file system of the path by this user; none when it has no files left. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize, files, ffree } = await statfs(path)
  return files > 0 && ffree === 0 ? 0 : bavail * bsize
}
