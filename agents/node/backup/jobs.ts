/** The reconciler of BackupJobs. Work that takes hours runs beside the reconciles, which report its progress. The work
 *  of a job is done once: its end is recorded in the ledger, and the ledger answers for an older object of the same
 *  job. A second run of a restore would overwrite newer data. */
import { defined } from '../../../domain/defined.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { StoreAway } from '../../../kit/chunks/object-store.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import { keyOf, type KubeObject } from '../../../kit/kube/object.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import type { Reconciler } from '../../../kit/reconcile/reconciler.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { BackupJob, type BackupJobSpec, type BackupJobStatus } from '../../../resources/backup-job/index.ts'
import type { BytesEntry, Ledger } from '../ledger.ts'
import { nameTaken } from '../name-taken.ts'
import { type BackupWork, HalfWritten, type WorkProgress } from './work.ts'

export interface BackupJobOptions {
  readonly work: BackupWork
  readonly ledger: Pick<Ledger, 'bytesOf' | 'putBytes'>
  readonly caches: Caches
  readonly namespace: string
  readonly clock: Clock
  readonly log: Logger
}

type JobObject = KubeObject<BackupJobSpec, BackupJobStatus>

/** State of a job that this process is working on. */
export interface Course {
  readonly progress: WorkProgress
  /** Reason of the last attempt that failed. */
  readonly failure?: string
  /** An attempt to restore has left the disk half written. */
  readonly isHalfWritten?: boolean
  /** Number of failed attempts. Attempts that failed for a passing reason do not count. */
  readonly attempts: number
}

interface Running {
  course: Course
  readonly stop: AbortController
  readonly ended: Promise<void>
}

const ATTEMPTS_MAXIMUM = 5
const RETRY_MILLISECONDS = 10_000
const REPORT_MILLISECONDS = 2_000
const DETAIL_CHARACTERS_MAXIMUM = 1_000

export interface ObservedJob {
  readonly course?: Course | undefined
  /** The host's ledger entry for the job's name. */
  readonly known?: BytesEntry | undefined
}

/** Guards in order: deleting, ended, name used by another object, done before, ended before, not started, under way. */
export function planBackupJob(job: JobObject, { course, known }: ObservedJob): readonly Action[] {
  const { metadata, status } = job
  const isTaken = isOfAnother(job, known)
  if (metadata.deletionTimestamp !== undefined)
    return status?.isRemoved === true
      ? []
      : [
          ...(isTaken ? [] : [{ do: 'effect', name: 'end', input: {} } as const]),
          { do: 'status', status: { state: status?.state ?? 'running', isRemoved: true } },
        ]
  if (status?.state === 'done' || status?.state === 'failed') return []
  if (isTaken) return [{ ...report({ state: 'failed', detail: TAKEN_DETAIL }), conditions: [nameTaken(TAKEN_DETAIL)] }]
  // Work that failed may be requested again, by another object.
  if (known?.job?.report !== undefined && (known.job.report.state === 'done' || known.uid === (metadata.uid ?? '')))
    return [report(known.job.report)]
  if (known?.state === 'removed' && known.uid === metadata.uid) return [report({ state: 'failed', detail: ENDED })]
  if (course === undefined) return [report({ state: 'running' }), { do: 'effect', name: 'begin', input: {} }]
  return [report(reportOf(course, 'running'))]
}

/** Other work was done under this name for another object. Work that was ended before it was done does not count: a
 *  disk that returns to this host brings its work along. */
const isOfAnother = ({ metadata: { uid }, spec }: JobObject, known: BytesEntry | undefined): boolean =>
  known !== undefined &&
  known.uid !== uid &&
  known.job?.work !== workOf(spec) &&
  !(known.state === 'removed' && known.job?.report === undefined)
const TAKEN_DETAIL = 'Other work was done on this host for another object of this name. Nothing is done for this one.'
const ENDED = 'The work was ended on this host before it was done, as was asked. It is not begun again.'

const workOf = ({ work, backup, volume = '', copyOf }: BackupJobSpec): string =>
  [work, backup.name, volume, copyOf?.name ?? ''].join(' ')

const reportOf = (
  { progress, failure, isHalfWritten }: Course,
  state: BackupJobStatus['state'],
): Omit<BackupJobStatus, 'observedGeneration' | 'conditions'> => {
  const detail = failure?.slice(0, DETAIL_CHARACTERS_MAXIMUM)
  return {
    ...progress,
    state,
    ...defined({ detail, isHalfWritten }),
  }
}

/** Clears the detail of an earlier attempt unless this status sets it again. */
const report = (
  status: { readonly [Field in keyof BackupJobStatus]?: BackupJobStatus[Field] | undefined },
): Extract<Action, { readonly do: 'status' }> => ({
  do: 'status',
  status: { detail: undefined, ...status },
})

/** The course after an attempt that failed. */
function courseAfter(course: Course, error: unknown): Course {
  const isHalfWritten = error instanceof HalfWritten
  const cause = isHalfWritten ? error.cause : error
  const isPassing = cause instanceof Unavailable || cause instanceof StoreAway
  return {
    ...course,
    failure: error instanceof Error ? error.message : String(error),
    attempts: course.attempts + (isPassing ? 0 : 1),
    ...(isHalfWritten ? { isHalfWritten } : {}),
  }
}

/** Writes the ledger entry before the report. */
function note(
  { ledger, clock }: Pick<BackupJobOptions, 'ledger' | 'clock'>,
  { metadata, spec }: JobObject,
  state: BytesEntry['state'],
  ended?: BackupJobStatus,
): void {
  const { name, uid = '' } = metadata
  const known = ledger.bytesOf('backup_job', name)?.job
  const report = ended ?? (state !== 'making' && known?.work === workOf(spec) ? known.report : undefined)
  ledger.putBytes('backup_job', name, {
    uid,
    state,
    at: clock.now().toISOString(),
    job: { work: workOf(spec), ...defined({ report }) },
  })
}

/** Works until the job is done, has failed too often, or is stopped. */
async function attempt(options: BackupJobOptions, job: JobObject, own: Running, wake: () => void): Promise<void> {
  const { work, clock, log } = options
  const { signal } = own.stop
  let reportedAt = clock.monotonicMilliseconds()
  const onProgress = (progress: WorkProgress) => {
    own.course = { ...own.course, progress }
    if (clock.monotonicMilliseconds() - reportedAt < REPORT_MILLISECONDS) return
    reportedAt = clock.monotonicMilliseconds()
    wake()
  }
  while (!signal.aborted) {
    try {
      const result = await work.run(job.spec, { signal, onProgress })
      note(options, job, 'made', { ...own.course.progress, ...result, state: 'done' })
      return wake()
    } catch (error) {
      if (signal.aborted) return undefined
      log.info('backup work interrupted', { backup_job: job.metadata.name, error })
      own.course = courseAfter(own.course, error)
    }
    if (own.course.attempts >= ATTEMPTS_MAXIMUM) {
      note(options, job, 'made', reportOf(own.course, 'failed'))
      return wake()
    }
    await clock.sleep(RETRY_MILLISECONDS, signal)
    wake()
  }
  return undefined
}

export function backupJobReconciler(
  options: BackupJobOptions,
): Reconciler<BackupJobSpec, BackupJobStatus, ObservedJob> {
  const { work, ledger, namespace, log } = options
  const running = new Map<string, Running>()
  let wake: (name: string) => void = () => {}

  return {
    name: 'backup-job',
    type: BackupJob,
    watches: [],
    wakes(wakeKey) {
      wake = (name) => wakeKey({ namespace, name })
      return () => {
        for (const { stop } of running.values()) stop.abort()
        wake = () => {}
      }
    },
    observe: ({ metadata: { name } }) => ({
      course: running.get(name)?.course,
      known: ledger.bytesOf('backup_job', name),
    }),
    plan: planBackupJob,
    effects: {
      async begin(_input, job) {
        const { name } = keyOf(job)
        if (running.has(name)) return undefined
        const begun = Promise.withResolvers<void>()
        const own: Running = {
          course: { progress: {}, attempts: 0 },
          stop: new AbortController(),
          ended: begun.promise,
        }
        note(options, job, 'making')
        running.set(name, own)
        void attempt(options, job, own, () => wake(name))
          .catch((error: unknown) => {
            log.error('the end of backup work is not noted; it begins anew', { backup_job: name, error })
            running.delete(name)
            wake(name)
          })
          .finally(() => begun.resolve())
        return undefined
      },
      async end(_input, job) {
        const { name } = keyOf(job)
        const own = running.get(name)
        own?.stop.abort()
        await own?.ended
        if (ledger.bytesOf('backup_job', name)?.job?.report?.state !== 'done') await work.abandon(job.spec)
        note(options, job, 'removed')
        running.delete(name)
        return undefined
      },
    },
  }
}
