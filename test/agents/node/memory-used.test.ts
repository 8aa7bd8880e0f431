/** Memory that a guest reports: numbers of a guest in an attacker's hands. */
import { describe, expect, it } from 'vitest'
import { readMemoryUsed } from '../../../agents/node/drivers/hypervisor/guest-counters.ts'

const now = new Date('2026-01-01T00:10:00Z')
const SECONDS = now.getTime() / 1_000
const GIBIBYTE = 2 ** 30

/** QEMU's answers: the guest has 1 GiB. */
const reported = (statistics: unknown) =>
  readMemoryUsed(
    {
      async execute(command) {
        if (command === 'qom-get') return statistics
        return command === 'query-memory-size-summary' ? { 'base-memory': GIBIBYTE, 'plugged-memory': 0 } : {}
      },
    },
    now,
  )
const statistics = (total: number, available: number, at = SECONDS - 5) => ({
  'last-update': at,
  stats: { 'stat-total-memory': total, 'stat-available-memory': available, 'stat-free-memory': 1 },
})

describe('memory that a guest reports', () => {
  it('is what is not available, within its memory', async () => {
    expect(await reported(statistics(GIBIBYTE - 1, GIBIBYTE / 4))).toBe((GIBIBYTE * 3) / 4 - 1)
  })

  it.each([
    ['more than its memory', statistics(GIBIBYTE + 1, 0)],
    ['more available than there is', statistics(GIBIBYTE, GIBIBYTE + 1)],
    ['nothing yet', statistics(2 ** 64, 2 ** 64)],
    ['less than nothing', statistics(GIBIBYTE, -1)],
    ['no memory', statistics(0, 0)],
    ['an old report', statistics(GIBIBYTE, 0, SECONDS - 600)],
    ['no report', statistics(GIBIBYTE, 0, 0)],
    ['another shape', { stats: { 'stat-total-memory': 'much' } }],
    ['nothing', undefined],
  ])('is unknown from %s', async (_name, answer) => {
    expect(await reported(answer)).toBeUndefined()
  })

  it('is unknown while QEMU does not answer, which fails nothing else', async () => {
    const qmp = { execute: () => Promise.reject(new Error('no answer')) }
    expect(await readMemoryUsed(qmp, now)).toBeUndefined()
  })
})
