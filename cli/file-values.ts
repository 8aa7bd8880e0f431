/** Reads values of flags from files: `--public-key @id.pub`. */
import { readFile } from 'node:fs/promises'
import type { Split } from './arguments.ts'
import type { Flag } from './commands.ts'
import { usage } from './exit.ts'

/** Keys and scripts do not look like this. */
const PATH = /^(~|\.{0,2})\/\S*$|^\S+\.(pub|sh|ya?ml|pem|crt|key)$/

/** Replaces flags that name files by the content of these files. Throws a Failure for a file that cannot be read, and
 *  for a path without `@` where a file's content is expected. */
export async function withFiles(flags: readonly Flag[], own: Split['own']): Promise<Split['own']> {
  const read = new Map(own)
  for (const { flag, isFromFile } of flags) {
    const values = own.get(flag)
    if (isFromFile && values !== undefined)
      read.set(flag, await Promise.all(values.map((value) => fileValue(flag, value ?? ''))))
  }
  return read
}

async function fileValue(flag: string, value: string): Promise<string> {
  if (value.startsWith('@'))
    return readFile(value.slice(1), 'utf8').catch((error: Error) => {
      throw usage(`${value.slice(1)} cannot be read: ${error.message}`)
    })
  if (PATH.test(value)) throw usage(`--${flag} takes what is in the file: write --${flag} @${value} to read it`)
  return value
}
