/** Files with a token, a key or a trusted certificate. */
import { readFile } from 'node:fs/promises'

/** The text without space around it. Throws for a file that cannot be read and for an empty one: an empty token would
 *  admit anybody who presents nothing, and Node trusts every public authority instead of an empty one. */
export async function readSecretFile(file: string): Promise<string> {
  const text = (await readFile(file, 'utf8')).trim()
  if (text === '') throw new Error(`${file} is empty`)
  return text
}
