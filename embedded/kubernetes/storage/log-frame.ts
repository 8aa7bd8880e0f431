/** One line of the log: a checksum and a batch of records that became durable together. */
import { crc32 } from 'node:zlib'
import { jsonText } from '../core/json.ts'
import type { KubeObject } from '../core/object.ts'
import type { StoredRecord } from './storage.ts'

const CHECKSUM_LENGTH = 8
export const checksum = (text: string): string => crc32(text).toString(16).padStart(CHECKSUM_LENGTH, '0')

/** `crc [[revision,"group/resource","key",object or null],...]\n`: JSON never contains a newline, so each line is a
 *  batch. */
export function frameOf(records: readonly StoredRecord[]): string {
  const items = records.map(
    ({ revision, storageKey, key, object }) =>
      `[${revision},${JSON.stringify(storageKey)},${JSON.stringify(key)},${object ? jsonText(object) : 'null'}]`,
  )
  const payload = `[${items.join(',')}]`
  return `${checksum(payload)} ${payload}\n`
}

/** The records of a line without its newline; undefined when the line is damaged. */
export function recordsIn(line: string): StoredRecord[] | undefined {
  const payload = line.slice(CHECKSUM_LENGTH + 1)
  if (line[CHECKSUM_LENGTH] !== ' ' || checksum(payload) !== line.slice(0, CHECKSUM_LENGTH)) return undefined
  // The checksum proves that frameOf wrote it.
  const items = JSON.parse(payload) as [number, string, string, KubeObject | null][]
  return items.map(([revision, storageKey, key, object]) => ({
    revision,
    storageKey,
    key,
    object: object ?? undefined,
  }))
}
