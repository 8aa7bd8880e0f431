/** Files with a token, a key or a trusted certificate. */
import { readFile } from 'node:fs/promises'

/** The text without space around it. Throws for a file that cannot be read and for an empty one: an empty token would
 *  admit anybody who presents nothing. */
export const readSecretFile = async (file: string): Promise<string> => (await readPemFile(file)).trim()

/** Certificates or a key as they are in the file: others compare and show them. Throws for a file that cannot be read
 *  and for an empty one: Node trusts every public authority instead of an empty one. */
export async function readPemFile(file: string): Promise<string> {
  const text = await readFile(file, 'utf8')
  if (text.trim() === '') throw new Error(`${file} is empty`)
  return text
}
