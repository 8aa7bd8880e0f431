/** The free space of a file system. */
import { statfs } from 'node:fs/promises'

/** Bytes that this user may still write to the file system of the path; 0 when it has no files left. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize, files, ffree } = await statfs(path)
  return files > 0 && ffree === 0 ? 0 : bavail * bsize
}
