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
      { kind: 'Server', foundAt: at(2), stopsSweeps: true },
      { kind: 'Server', foundAt: at(1), stopsSweeps: false },
      { kind: 'FloatingIP', foundAt: at(3), stopsSweeps: true },
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
    expect(alarmsOf({ ...NOTHING, brokenChains: [{ accountId: 'a', reason: 'entry 3 was changed' }] })).toMatchObject([
      {
        kind: 'audit_broken',
        severity: 'critical',
        accountId: 'a',
        message: expect.stringContaining('entry 3 was changed'),
      },
    ])
  })

  it('are bounded, each kind for itself', () => {
    const stalled = Array.from({ length: ALARMS_OF_KIND_MAXIMUM + 1 }, (_, index) => finding(`s${index}`, at(index)))
    const ids = idsOf({ stalled, overdue: [finding('operation')] })
    expect(ids).toHaveLength(ALARMS_OF_KIND_MAXIMUM + 1)
    expect(ids).not.toContain(`resource_stalled s${ALARMS_OF_KIND_MAXIMUM}`)
  })

  it.each(Object.values(ALERT_OF).filter((alert) => alert !== null))('%s is an alert with a section', async (alert) => {
    const text = await readFile(join(import.meta.dirname, '../../../docs/alerts.md'), 'utf8')
    expect(text).toContain(`### ${alert}\n`)
  })
})
