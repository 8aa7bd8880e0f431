/** What an agent does about its BackupJobs, and that its reports are what the kind takes. */
import { expect, test } from 'vitest'
import { backupJobReconciler, type Course, planBackupJob } from '../../../../agents/node/backup/jobs.ts'
import type { BackupWork } from '../../../../agents/node/backup/work.ts'
import { StoreAway, StoreFailed } from '../../../../kit/chunks/object-store.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { BackupJob, type BackupJobStatus } from '../../../../resources/backup-job/index.ts'

const job = (status?: BackupJobStatus, isDeleting = false) =>
  ({
    metadata: { name: 'j', ...(isDeleting ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    ...(status === undefined ? {} : { status }),
  }) as Parameters<typeof planBackupJob>[0] // the plan looks at nothing else
const course = (more: Partial<Course> = {}): Course => ({ progress: {}, attempts: 0, ...more })
const running = { state: 'running', bytesDone: 1 } as const

test.each<[string, ReturnType<typeof job>, Course | undefined, readonly string[]]>([
  ['one that is new is begun', job(), undefined, ['running', 'begin']],
  ['one that goes on is reported', job(running), course(), ['running']],
  ['one that is done', job(running), course({ result: {} }), ['done']],
  ['one that failed too often', job(running), course({ attempts: 5, failure: 'why' }), ['failed']],
  ['one that has ended is left alone', job({ state: 'failed' }), course(), []],
  ['one that is deleted is ended first', job(running, true), course(), ['end', 'running, removed']],
  ['one that is deleted before it was begun', job(undefined, true), undefined, ['end', 'running, removed']],
  ['one that is removed', job({ ...running, isRemoved: true }, true), undefined, []],
])('%s', (_which, object, known, does) => {
  const summary = planBackupJob(object, known).flatMap((action) => {
    if (action.do === 'effect') return [action.name]
    if (action.do !== 'status') return []
    // as it is on the wire, after what was there
    const written = BackupJob.status.parse(JSON.parse(JSON.stringify({ ...object.status, ...action.status })))
    return [written.state + (written.isRemoved === true ? ', removed' : '')]
  })
  expect(summary).toEqual(does)
})

test('a store that is away is waited for, and the job says so; one that refuses ends it', async () => {
  let failure: Error = new StoreAway('PUT /b/c/1: connect ECONNREFUSED')
  let runs = 0
  const reconciler = backupJobReconciler({
    work: {
      run: async () => {
        runs += 1
        if (runs === 20) failure = new StoreFailed('PUT /b/c/1: status 403')
        throw failure
      },
    } as unknown as BackupWork, // nothing else of it is called
    caches: undefined as never, // not used
    namespace: 'node-n1',
    clock: { ...systemClock, sleep: async () => {} },
    log: silentLog,
  })
  const details: (string | undefined)[] = []
  const object = { metadata: { name: 'j' }, spec: {} } as Parameters<typeof reconciler.observe>[0]
  const ended = new Promise<void>((resolve) => {
    reconciler.wakes?.(async () => {
      const [action] = planBackupJob(job(running), (await reconciler.observe(object, new Date())) as Course)
      if (action?.do !== 'status') return
      const { state, detail } = action.status as BackupJobStatus
      details.push(detail)
      if (state === 'failed') resolve()
    })
  })
  await reconciler.effects?.['begin']?.({}, object)
  await ended
  expect(runs).toBe(24)
  expect(details[10]).toContain('ECONNREFUSED')
})
