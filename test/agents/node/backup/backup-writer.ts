/** A process that writes a backup to object storage, so slowly that it can be killed meanwhile. It says when the first
 *  chunks are there. */
import { setTimeout } from 'node:timers/promises'
import { openS3Store } from '../../../../kit/chunks/s3-store.ts'
import { openRepository } from '../../../../kit/chunks/repository.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'
import { writeBackup } from '../../../../agents/node/backup/write-backup.ts'

const { place } = JSON.parse(process.env['WRITER'] ?? '')
const store = openS3Store({ url: new URL(place.url), authority: place.authority, credentials: place, clock })
const MEBIBYTE = 1_048_576
const CHUNKS = 8
let sent = 0
const slow = {
  ...store,
  async put(name: string, bytes: Buffer) {
    await store.put(name, bytes)
    if ((sent += 1) === 3) process.send?.('written')
    if (sent >= 3) await setTimeout(60_000)
  },
}
await writeBackup({
  repository: openRepository({ store: slow, key: Buffer.from('01'.repeat(32), 'hex'), clock, random }),
  point: {
    sizeBytes: CHUNKS * MEBIBYTE,
    read: async (offset, length, target) => target.fill(1 + offset / MEBIBYTE, 0, length),
    data: [{ offset: 0, length: CHUNKS * MEBIBYTE }],
    changed: undefined,
  },
  backup: 'b1',
  origin: 's1',
  parent: undefined,
  longestBackupSeconds: 3_600,
  clock,
  onProgress: () => {},
  signal: new AbortController().signal,
})
