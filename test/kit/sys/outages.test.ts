import { beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../../kit/sys/clock.ts'
import { type Logger, silentLog } from '../../../kit/sys/log.ts'
import { OUTAGE_MILLISECONDS, Outages } from '../../../kit/sys/outages.ts'

let now = 0
let logged: string[]
let outages: Outages
const clock = { ...systemClock, monotonicMilliseconds: () => now }
beforeEach(() => {
  logged = []
  const log: Logger = {
    ...silentLog,
    info: (message) => void logged.push(`info ${message}`),
    warn: (message) => void logged.push(`warn ${message}`),
  }
  outages = new Outages({ log, clock }, 'not swept')
})
const fails = () => outages.attempt(() => Promise.reject(new Error('away')))
const succeeds = () => outages.attempt(async () => 1)

test('what fails wakes somebody once, when it has failed for long', async () => {
  expect(await fails()).toBe(false)
  now += OUTAGE_MILLISECONDS - 1
  await fails()
  expect(logged).toEqual(['info not swept', 'info not swept'])
  now += 1
  await fails()
  await fails()
  expect(logged.slice(2)).toEqual(['warn not swept', 'info not swept'])
})

test('an attempt that succeeds ends it, and says so when somebody was woken', async () => {
  await fails()
  now += OUTAGE_MILLISECONDS
  expect(await succeeds()).toBe(true)
  await fails()
  now += OUTAGE_MILLISECONDS
  await fails()
  await succeeds()
  await succeeds()
  expect(logged).toEqual(['info not swept', 'info not swept', 'warn not swept', 'info over: not swept'])
})

test('one thing that fails has nothing to do with another', () => {
  outages.failed('away', {}, 'one')
  now += OUTAGE_MILLISECONDS
  outages.failed('away', {}, 'other')
  outages.over('other')
  outages.failed('away', {}, 'one')
  expect(logged).toEqual(['info not swept', 'info not swept', 'warn not swept'])
})

test('of too many things that fail the last are counted together', () => {
  for (let i = 0; i < 15_000; i++) outages.failed('away', {}, String(i))
  now += OUTAGE_MILLISECONDS
  for (const key of ['14999', '14998', '0']) outages.failed('away', {}, key)
  expect(logged.slice(15_000)).toEqual(['warn not swept', 'info not swept', 'warn not swept'])
  outages.over('14997')
  outages.failed('away', {}, '14999')
  expect(logged.at(-1)).toBe('info not swept')
})
