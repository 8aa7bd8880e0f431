/** How much sweeps take away at once. */
import { expect, test } from 'vitest'
import { openSweepRate } from '../../../controllers/kit/sweep-rate.ts'

test('of many that were deleted past their controllers, twenty or one in fifty go in ten minutes', () => {
  let now = 0
  const rate = openSweepRate({ monotonicMilliseconds: () => now })
  const going = (kind: string, known: number) =>
    Array.from({ length: 200 }, (_, index) => `${kind}-${index}`).filter((id) => rate.mayGo(kind, id, known)).length
  expect([going('Storage', 200), going('Server', 5_000)]).toEqual([20, 100])
  expect([...rate.waiting()]).toEqual([
    ['Storage', 180],
    ['Server', 100],
  ])
  // Those that may go may still, and no other.
  now = 599_999
  expect(going('Storage', 200)).toBe(20)
  now = 600_000
  expect([going('Storage', 200), rate.mayGo('Storage', 'Storage-0', 200)]).toEqual([20, true])
  // Whoever went waits no longer, nor does whoever nobody asks for again.
  expect([...rate.waiting()]).toEqual([['Storage', 180]])
  expect(Array.from({ length: 200 }, (_, index) => rate.mayGo('Storage', `Storage-${index}`, 10_000))).not.toContain(
    false,
  )
  expect([...rate.waiting()]).toEqual([])
})
