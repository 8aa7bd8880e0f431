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

export interface AlarmFacts {
  /** Recorded resources that are missing and were not deleted. */
  readonly absences: readonly { readonly kind: string; readonly foundAt: Date; readonly stopsSweeps: boolean }[]
  /** Null for the log of staff. */
  readonly brokenChains: readonly { readonly accountId: string | null; readonly reason: string }[]
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
  const stopping = absences.filter(({ stopsSweeps }) => stopsSweeps)
  const kinds = new Map<string, AlarmFacts['absences'][number][]>()
  for (const absence of absences) kinds.set(absence.kind, [...(kinds.get(absence.kind) ?? []), absence])
  const datesOf = (some: AlarmFacts['absences']): readonly Date[] => some.map(({ foundAt }) => foundAt)
  return [
    ...(stopping.length === 0
      ? []
      : [
          general(
            'sweeps_stopped',
            `${stopping.length} records were missing at once: nothing is removed until an operator has checked.`,
            earliest(datesOf(stopping)),
          ),
        ]),
    ...[...kinds].map(([kind, some]) =>
      general(
        'record_missing',
        `Missing and not deleted: ${some.length} of the kind ${kind}. Their claims are kept.`,
        earliest(datesOf(some)),
      ),
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
  return ALARM_SEVERITIES.flatMap((severity) =>
    ALARM_KINDS.flatMap((kind) =>
      all
        .filter((alarm) => alarm.kind === kind && alarm.severity === severity)
        .toSorted((a, b) => timeOf(a) - timeOf(b))
        .slice(0, ALARMS_OF_KIND_MAXIMUM),
    ),
  )
}
