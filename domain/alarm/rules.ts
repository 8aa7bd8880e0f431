/** What needs an operator now, as far as the platform's own records show it. Pure. Rates and durations are judged by
 *  Prometheus: decision 171. */

/** In the order of lists, within a severity. */
export const ALARM_KINDS = [
  'sweeps_stopped',
  'audit_broken',
  'node_lost',
  'archive_paused',
  'operation_overdue',
  'record_missing',
  'archive_failing',
  'resource_stalled',
] as const
export type AlarmKind = (typeof ALARM_KINDS)[number]

/** In the order of lists. */
export const ALARM_SEVERITIES = ['critical', 'warning'] as const

const SEVERITIES: Readonly<Record<AlarmKind, (typeof ALARM_SEVERITIES)[number]>> = {
  sweeps_stopped: 'critical',
  audit_broken: 'critical',
  node_lost: 'critical',
  archive_paused: 'critical',
  operation_overdue: 'warning',
  record_missing: 'warning',
  archive_failing: 'warning',
  resource_stalled: 'warning',
}

/** The alert of the chart about the same condition, with its section in `docs/alerts.md`; null for none. */
export const ALERT_OF: Readonly<Record<AlarmKind, string | null>> = {
  sweeps_stopped: 'SvccloudSweepsStopped',
  audit_broken: 'SvccloudAuditBroken',
  node_lost: 'SvccloudNodeNotFenced',
  archive_paused: 'SvccloudDatabaseArchivePaused',
  operation_overdue: null,
  record_missing: 'SvccloudClaimsLost',
  archive_failing: 'SvccloudDatabaseArchiveFails',
  resource_stalled: null,
}

export interface Subject {
  readonly type: string
  readonly id: string
  /** What people call it; null without a name. */
  readonly name: string | null
}

export interface Alarm {
  readonly kind: AlarmKind
  readonly severity: (typeof ALARM_SEVERITIES)[number]
  /** For people. */
  readonly message: string
  /** Null for what concerns no single resource. */
  readonly resource: Subject | null
  /** Account that it belongs to; null for the platform. */
  readonly accountId: string | null
  /** Null where it is not known. */
  readonly since: Date | null
}

/** Something of one resource, with the words of whoever found it. */
export interface Finding {
  readonly resource: Subject
  readonly accountId: string | null
  readonly message: string
  readonly since: Date | null
}

interface AbsencesOfKind {
  readonly kind: string
  readonly count: number
  readonly since: Date
  /** How many of them stop sweeps. */
  readonly stopping: number
  readonly stoppingSince: Date | null
}

export interface AlarmFacts {
  /** Recorded resources that are missing and were not deleted. */
  readonly absences: readonly AbsencesOfKind[]
  /** The first of them; null for the log of staff. */
  readonly brokenChains: readonly { readonly accountId: string | null; readonly reason: string }[]
  readonly brokenChainCount: number
  /** Nodes that do not answer, or are fenced. */
  readonly lostNodes: readonly Finding[]
  readonly pausedArchives: readonly Finding[]
  readonly failingArchives: readonly Finding[]
  /** Operations that go on beyond their deadline. */
  readonly overdue: readonly Finding[]
  /** Resources that do not get on without help. */
  readonly stalled: readonly Finding[]
}

/** Of each kind; the oldest first. */
export const ALARMS_OF_KIND_MAXIMUM = 100

const earliest = (dates: readonly Date[]): Date | null =>
  dates.reduce<Date | null>((first, date) => (first === null || date < first ? date : first), null)

const found = (kind: AlarmKind, findings: readonly Finding[]): readonly Alarm[] =>
  findings.map((finding) => ({ kind, severity: SEVERITIES[kind], ...finding }))

const general = (kind: AlarmKind, message: string, since: Date | null, accountId: string | null = null): Alarm => ({
  kind,
  severity: SEVERITIES[kind],
  message,
  resource: null,
  accountId,
  since,
})

function ofAbsences(absences: AlarmFacts['absences']): readonly Alarm[] {
  const stopping = absences.reduce((sum, each) => sum + each.stopping, 0)
  const stoppingSince = earliest(absences.flatMap((each) => each.stoppingSince ?? []))
  return [
    ...(stopping === 0
      ? []
      : [
          general(
            'sweeps_stopped',
            `${stopping} records were missing at once: nothing is removed until an operator has checked.`,
            stoppingSince,
          ),
        ]),
    ...absences.map(({ kind, count, since }) =>
      general('record_missing', `Missing and not deleted: ${count} of the kind ${kind}. Their claims are kept.`, since),
    ),
  ]
}

const timeOf = ({ since }: Alarm): number => since?.getTime() ?? Number.POSITIVE_INFINITY

/** The most severe first, then by kind, then the oldest. */
export function alarmsOf(facts: AlarmFacts): readonly Alarm[] {
  const all: readonly Alarm[] = [
    ...ofAbsences(facts.absences),
    ...facts.brokenChains.map(({ accountId, reason }) =>
      general('audit_broken', `The audit log does not verify: ${reason}`, null, accountId),
    ),
    ...found('node_lost', facts.lostNodes),
    ...found('archive_paused', facts.pausedArchives),
    ...found('archive_failing', facts.failingArchives),
    ...found('operation_overdue', facts.overdue),
    ...found('resource_stalled', facts.stalled),
  ]
  const hidden: Partial<Record<AlarmKind, number>> = {
    audit_broken: facts.brokenChainCount - facts.brokenChains.length,
  }
  return ALARM_SEVERITIES.flatMap((severity) =>
    ALARM_KINDS.filter((kind) => SEVERITIES[kind] === severity).flatMap((kind) =>
      bounded(
        kind,
        all.filter((alarm) => alarm.kind === kind),
        hidden[kind] ?? 0,
      ),
    ),
  )
}

/** The oldest, and how many more there are. */
function bounded(kind: AlarmKind, alarms: readonly Alarm[], hidden: number): readonly Alarm[] {
  const shown = alarms.toSorted((a, b) => timeOf(a) - timeOf(b)).slice(0, ALARMS_OF_KIND_MAXIMUM)
  const others = alarms.length - shown.length + hidden
  return others <= 0 ? shown : [...shown, general(kind, `And ${others} more, which are not in this list.`, null)]
}
