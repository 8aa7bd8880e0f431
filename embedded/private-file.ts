/** Files that only their owner may read, replaced as a whole. */
import { open, rename } from 'node:fs/promises'
import { newBase62, systemRandom } from '../kit/sys/random.ts'

/** Readers see the old content or the new one, also after a power cut. */
export async function writePrivately(file: string, text: string): Promise<void> {
  const partial = `${file}.${newBase62(systemRandom, 8)}`
  const handle = await open(partial, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(partial, file)
}
