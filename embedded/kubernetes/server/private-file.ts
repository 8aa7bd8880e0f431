/** Files that only their owner may read, replaced as a whole. */
import { open, rename } from 'node:fs/promises'
import { newBase62, systemRandom } from '../../../kit/sys/random.ts'

/** Readers see the old content or the new one, also after a power cut. */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  const partial = `${path}.${newBase62(systemRandom, 8)}`
  const file = await open(partial, 'wx', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(partial, path)
}
