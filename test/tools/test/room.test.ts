import { expect, it } from 'vitest'
import type { Choice } from '../../../tools/test/record.ts'
import { fit, Room } from '../../../tools/test/room.ts'

const choice = (turn: string, seconds: number | undefined, isRun = true): Choice => ({
  file: `test/${turn}.test.ts`,
  isRun,
  reason: 'its reason',
  seconds,
  turn,
})
const tier = (workersMaximum: number, ...choices: readonly Choice[]) => ({ tier: { workersMaximum }, choices })
const runs = (tiers: readonly { readonly choices: readonly Choice[] | undefined }[]) =>
  tiers.flatMap(({ choices = [] }) => choices.filter(({ isRun }) => isRun).map(({ turn }) => turn))

it.each([
  ['all files when there is time', 310, [tier(1, choice('a', 100), choice('b', 200))], ['a', 'b']],
  ['those whose turn is first', 210, [tier(1, choice('b', 200), choice('a', 100))], ['a']],
  ['a short one for which there is still time', 150, [tier(1, choice('a', 200), choice('b', 140))], ['b']],
  ['two at a time', 110, [tier(2, choice('a', 100), choice('b', 100))], ['a', 'b']],
  ['two tiers one after the other', 210, [tier(1, choice('a', 100)), tier(1, choice('b', 100))], ['a']],
  ['one whose time is not known, as if it took a minute', 70, [tier(1, choice('a', undefined))], ['a']],
  ['none without time', -5, [tier(1, choice('a', 1))], []],
  ['none that need not run', 1000, [tier(1, choice('a', 1, false))], []],
])('runs %s', (_what, seconds, tiers, expected) => {
  const fitted = fit(tiers, seconds)
  expect(runs(fitted)).toEqual(expected)
  for (const { isRun, reason } of fitted.flatMap(({ choices }) => choices)) if (isRun) expect(reason).toBe('its reason')
})

it('says why a file does not run', () =>
  expect(fit([tier(1, choice('a', 100))], 50)[0]?.choices[0]).toMatchObject({
    isRun: false,
    reason: 'the time does not suffice for it',
  }))

it('leaves out files of the next tiers on a slower machine, and none on a faster one', async () => {
  for (const [tookSeconds, expected] of [
    [110, ['b', 'c']],
    [220, ['b']],
    [20, ['b', 'c']],
  ] as const) {
    let now = 0
    const room = new Room(400, () => now)
    const [first, ...rest] = [tier(1, choice('a', 100)), tier(1, choice('b', 50)), tier(1, choice('c', 50))]
    await room.measure(first!, async () => {
      now += tookSeconds * 1000
    })
    expect(runs(room.fit(rest))).toEqual(expected)
  }
})
