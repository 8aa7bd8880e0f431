import { expect, test } from 'vitest'
import { openFolderUsage } from '../../../embedded/object-storage/usage.ts'

test('the most that walks of a clock hour found is remembered for that hour', async () => {
  let [now, bytes] = [new Date('2026-03-01T10:10:00Z'), 10]
  const usage = openFolderUsage(
    async () => ({ bytes, objects: 1, buckets: 1, files: 1 }),
    () => now,
  )
  const walk = async (at: string, found: number): Promise<number | undefined> => {
    ;[now, bytes] = [new Date(at), found]
    await usage.measure()
    return usage.measured?.highestBytes
  }
  const highest = [await walk('2026-03-01T10:10:00Z', 10), await walk('2026-03-01T10:20:00Z', 3)]
  // Stored over what is there already: it counts until the next walk, and costs nothing.
  usage.reserve({ bytes: 90, files: 1, buckets: 0 })(true)
  expect(usage.bytes()).toBe(93)
  highest.push(await walk('2026-03-01T10:59:59Z', 4), await walk('2026-03-01T11:00:00Z', 4))
  expect(highest).toEqual([10, 10, 10, 4])
})
