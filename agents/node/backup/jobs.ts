/** The reconciler of BackupJobs: work that takes hours runs beside the reconciles, which report how far it is. */
import { Unavailable } from '../../../domain/problem.ts'
import { StoreAway } from '../../../kit/chunks/object-store.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import { keyOf, type KubeObject } from '../../../kit/kube/object.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import type { Reconciler } from '../../../kit/reconcile/reconciler.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { BackupJob, type BackupJobSpec, type BackupJobStatus } from '../../../resources/backup-job/index.ts'
import { type BackupWork, HalfWritten, type WorkProgress, type WorkResult } from './work.ts'

export interface BackupJobOptions {
  readonly work: BackupWork
  readonly caches: Caches
  readonly namespace: string
  readonly clock: Clock
  readonly log: Logger
}

type JobObject = KubeObject<BackupJobSpec, BackupJobStatus>

/** How the work of a job is, as this process knows it. */
export interface Course {
  readonly progress: WorkProgress
  readonly result?: WorkResult
  /** Of the last attempt that did not succeed. */
  readonly failure?: string
  /** An attempt to restore has left the disk half written. */
  readonly isHalfWritten?: boolean
  /** That failed; those that came at a bad time do not count. */
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

/** Guards in order: deleting, ended, not begun, under way. */
export function planBackupJob({ metadata, status }: JobObject, course: Course | undefined): readonly Action[] {
  if (metadata.deletionTimestamp !== undefined)
    return status?.isRemoved === true
      ? []
      : [
          { do: 'effect', name: 'end', input: { isDone: status?.state === 'done' } },
          { do: 'status', status: { state: status?.state ?? 'running', isRemoved: true } },
        ]
  if (status?.state === 'done' || status?.state === 'failed') return []
  if (course === undefined) return [report({ state: 'running' }), { do: 'effect', name: 'begin', input: {} }]
  const { progress, result, failure, attempts, isHalfWritten } = course
  const detail = failure?.slice(0, DETAIL_CHARACTERS_MAXIMUM)
  if (result !== undefined) return [report({ ...progress, ...result, state: 'done', detail: undefined })]
  const state = attempts >= ATTEMPTS_MAXIMUM ? 'failed' : 'running'
  return [report({ ...progress, state, detail, ...(isHalfWritten === undefined ? {} : { isHalfWritten }) })]
}

const report = (
  status: { readonly [Field in keyof BackupJobStatus]?: BackupJobStatus[Field] | undefined },
): Action => ({
  do: 'status',
  status,
})

/** Of an attempt that did not succeed. */
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

export function backupJobReconciler({
  work,
  namespace,
  clock,
  log,
}: BackupJobOptions): Reconciler<BackupJobSpec, BackupJobStatus, Course | undefined> {
  const running = new Map<string, Running>()
  let wake: (name: string) => void = () => {}

  async function attempt(name: string, job: BackupJobSpec, own: Running): Promise<void> {
    const { signal } = own.stop
    let reportedAt = clock.monotonicMilliseconds()
    const onProgress = (progress: WorkProgress) => {
      own.course = { ...own.course, progress }
      if (clock.monotonicMilliseconds() - reportedAt < REPORT_MILLISECONDS) return
      reportedAt = clock.monotonicMilliseconds()
      wake(name)
    }
    while (own.course.attempts < ATTEMPTS_MAXIMUM && own.course.result === undefined && !signal.aborted) {
      try {
        own.course = { ...own.course, result: await work.run(job, { signal, onProgress }) }
      } catch (error) {
        if (signal.aborted) return
        log.warn('backup work interrupted', { backup_job: name, error })
        own.course = courseAfter(own.course, error)
        if (own.course.attempts < ATTEMPTS_MAXIMUM) await clock.sleep(RETRY_MILLISECONDS, signal)
      }
      wake(name)
    }
  }

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
    observe: ({ metadata: { name } }) => running.get(name)?.course,
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
        running.set(name, own)
        void attempt(name, job.spec, own).finally(() => begun.resolve())
        return undefined
      },
      async end({ isDone }, { metadata: { name }, spec }) {
        const own = running.get(name)
        own?.stop.abort()
        await own?.ended
        if (isDone !== true) await work.abandon(spec)
        running.delete(name)
        return undefined
      },
    },
  }
}
