import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  type AlarmFacts,
  ALARMS_OF_KIND_MAXIMUM,
  alarmsOf,
  ALERT_OF,
  type Finding,
} from '../../../domain/alarm/rules.ts'

const NOTHING: AlarmFacts = {
  absences: [],
  brokenChains: [],
  brokenChainCount: 0,
  lostNodes: [],
  pausedArchives: [],
  failingArchives: [],
  overdue: [],
  stalled: [],
}
const at = (hour: number): Date => new Date(Date.UTC(2027, 0, 1, hour))
const finding = (id: string, since: Date | null = at(0)): Finding => ({
  resource: { type: 'server', id, name: null },
  accountId: null,
  message: `about ${id}`,
  since,
})
const idsOf = (facts: Partial<AlarmFacts>) =>
  alarmsOf({ ...NOTHING, ...facts }).map(({ kind, resource }) => `${kind} ${resource?.id ?? ''}`.trim())

describe('alarms', () => {
  it('are none while nothing is wrong', () => {
    expect(alarmsOf(NOTHING)).toEqual([])
  })

  it('have the most severe first, then the oldest', () => {
    expect(
      idsOf({
        stalled: [finding('unknown', null), finding('late', at(2)), finding('early', at(1))],
        lostNodes: [finding('node')],
        overdue: [finding('operation')],
      }),
    ).toEqual([
      'node_lost node',
      'operation_overdue operation',
      'resource_stalled early',
      'resource_stalled late',
      'resource_stalled unknown',
    ])
  })

  it('count missing records by kind, and say when they stop sweeps', () => {
    const absences = [
      { kind: 'Server', count: 2, since: at(1), stopping: 1, stoppingSince: at(2) },
      { kind: 'FloatingIP', count: 1, since: at(3), stopping: 1, stoppingSince: at(3) },
    ]
    expect(alarmsOf({ ...NOTHING, absences })).toEqual([
      {
        kind: 'sweeps_stopped',
        severity: 'critical',
        message: '2 records were missing at once: nothing is removed until an operator has checked.',
        resource: null,
        accountId: null,
        since: at(2),
      },
      expect.objectContaining({
        kind: 'record_missing',
        severity: 'warning',
        message: 'Missing and not deleted: 2 of the kind Server. Their claims are kept.',
        since: at(1),
      }),
      expect.objectContaining({ message: 'Missing and not deleted: 1 of the kind FloatingIP. Their claims are kept.' }),
    ])
  })

  it('name the account whose log is broken', () => {
    expect(
      alarmsOf({ ...NOTHING, brokenChains: [{ accountId: 'a', reason: 'entry 3 was changed' }], brokenChainCount: 1 }),
    ).toMatchObject([
      {
        kind: 'audit_broken',
        severity: 'critical',
        accountId: 'a',
        message: expect.stringContaining('entry 3 was changed'),
      },
    ])
  })

  it('are bounded, each kind for itself, and say how many more there are', () => {
    const stalled = Array.from({ length: ALARMS_OF_KIND_MAXIMUM + 1 }, (_, index) => finding(`s${index}`, at(index)))
    const ids = idsOf({ stalled, overdue: [finding('operation')] })
    expect(ids).toHaveLength(ALARMS_OF_KIND_MAXIMUM + 2)
    expect(ids).not.toContain(`resource_stalled s${ALARMS_OF_KIND_MAXIMUM}`)
    expect(alarmsOf({ ...NOTHING, stalled }).at(-1)).toMatchObject({
      kind: 'resource_stalled',
      message: expect.stringMatching(/^And 1 more/),
    })
    const brokenChains = [{ accountId: 'a', reason: 'entry 3 was changed' }]
    expect(alarmsOf({ ...NOTHING, brokenChains, brokenChainCount: 8 }).at(-1)).toMatchObject({
      kind: 'audit_broken',
      message: expect.stringMatching(/^And 7 more/),
    })
  })

  it.each(Object.values(ALERT_OF).filter((alert) => alert !== null))('%s is an alert with a section', async (alert) => {
    const text = await readFile(join(import.meta.dirname, '../../../docs/alerts.md'), 'utf8')
    expect(text).toContain(`### ${alert}\n`)
  })
})
