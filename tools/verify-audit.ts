/** Checks an export of the audit log with nothing but the file: node tools/verify-audit.ts export.ndjson [hash of the
 *  entry before the first] Stands alone on purpose, so that anyone can read, copy or rewrite it: no import of the
 *  product, no dependency. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** RFC 8785: members sorted, no spaces. */
const canonical = (value: unknown): string =>
  Array.isArray(value)
    ? `[${value.map(canonical).join(',')}]`
    : value !== null && typeof value === 'object'
      ? `{${Object.entries(value)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`)
          .join(',')}}`
      : JSON.stringify(value)

/** The result of checking an export. */
export interface Verdict {
  readonly isWhole: boolean
  readonly text: string
}

/** Checks the lines of an export. `start` is the hash of the entry before the first, if known. */
export function verifyAudit(lines: Iterable<string>, start?: string): Verdict {
  let sequence: number | undefined
  let previous = start
  let entries = 0
  for (const line of lines) {
    if (line === '') continue
    const { entry_hash, ...entry } = JSON.parse(line)
    // an export that starts later trusts its first link
    previous ??= entry.sequence === 1 ? '0'.repeat(64) : entry.previous_hash
    const fault =
      sequence !== undefined && entry.sequence !== sequence + 1
        ? `comes after ${sequence}`
        : entry.previous_hash !== previous
          ? 'does not name the entry before it'
          : createHash('sha256').update(canonical(entry)).digest('hex') !== entry_hash
            ? 'was changed'
            : undefined
    if (fault !== undefined) return { isWhole: false, text: `BROKEN: entry ${entry.sequence} (${entry.id}) ${fault}` }
    sequence = entry.sequence
    previous = entry_hash
    entries += 1
  }
  return {
    isWhole: true,
    text: `OK: ${entries} entries, the last is ${sequence ?? 'none'} with hash ${previous ?? 'none'}`,
  }
}

const USAGE = `usage: node tools/verify-audit.ts [FILE | -] [HASH]

Checks an export of the audit log. HASH is that of the entry before its first, for an export that starts later.`

if (import.meta.main) {
  const [, , file = '-', start] = process.argv
  if (file === '--help' || file === '-h') {
    console.log(USAGE)
    process.exit(0)
  }
  const { isWhole, text } = verifyAudit(readFileSync(file === '-' ? 0 : file, 'utf8').split('\n'), start)
  console.log(text)
  process.exitCode = isWhole ? 0 : 1
}
