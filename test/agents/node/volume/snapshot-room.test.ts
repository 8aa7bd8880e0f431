/** When the room of snapshots is measured. The measures are the test's own. */
import { beforeEach, expect, it } from 'vitest'
import { simulatedVolumes } from '../../../../agents/node/drivers/storage/simulated.ts'
import { SnapshotRoom } from '../../../../agents/node/volume/snapshot-room.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { eventually } from '../../../eventually.ts'

const SNAPSHOT = { name: 's1', sizeGibibytes: 1, isFrozen: false }
let now: number
let measures: number
let changes: string[]
let answer: () => Promise<ReadonlyMap<string, number>>
let room: SnapshotRoom

beforeEach(() => {
  ;[now, measures, changes] = [0, 0, []]
  answer = async () => new Map([['s1', 7]])
  const volumes = {
    ...simulatedVolumes(new Map()),
    roomOfSnapshots: () => {
      measures += 1
      return answer()
    },
  }
  const clock = { monotonicMilliseconds: () => now } as never // nothing else is asked of it
  room = new SnapshotRoom({ volumes, clock, log: silentLog })
  room.onChange((volume) => changes.push(volume))
})
const changed = (count: number) => eventually('the measure', async () => (changes.length === count ? true : undefined))

it('is measured beside, and known afterwards', async () => {
  expect(room.of('v', [SNAPSHOT])).toEqual([SNAPSHOT])
  await changed(1)
  expect(room.of('v', [SNAPSHOT])).toEqual([{ ...SNAPSHOT, usedBytes: 7 }])
  expect(measures).toBe(1)
})

it('is measured again when it is old, at once for other snapshots; until then the last value is reported', async () => {
  room.of('v', [SNAPSHOT])
  await changed(1)
  answer = async () => new Map([['s1', 9]])
  now = 600_000
  expect(room.of('v', [SNAPSHOT])).toEqual([{ ...SNAPSHOT, usedBytes: 7 }])
  await changed(2)
  expect(room.of('v', [SNAPSHOT, { ...SNAPSHOT, name: 's2' }])).toMatchObject([{ usedBytes: 9 }, { name: 's2' }])
  expect(measures).toBe(3)
})

it('is not known where it cannot be measured, and tried again later', async () => {
  answer = () => Promise.reject(new Error('gone'))
  room.of('v', [SNAPSHOT])
  expect(room.of('v', [SNAPSHOT])).toEqual([SNAPSHOT])
  now = 600_000
  room.of('v', [SNAPSHOT])
  expect(measures).toBe(2)
})

it('is not measured without snapshots', () => {
  expect(room.of('v', [])).toEqual([])
  expect(measures).toBe(0)
})
