/** What an agent does about its BackupJobs, and that its reports are what the kind takes. */
import { expect, test } from 'vitest'
import {
  backupJobReconciler,
  type Course,
  type ObservedJob,
  planBackupJob,
} from '../../../../agents/node/backup/jobs.ts'
import { type BytesEntry, ledgerInMemory } from '../../../../agents/node/ledger.ts'
import type { BackupWork } from '../../../../agents/node/backup/work.ts'
import { defined } from '../../../../domain/defined.ts'
import { StoreAway, StoreFailed } from '../../../../kit/chunks/object-store.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { BackupJob, type BackupJobStatus } from '../../../../resources/backup-job/index.ts'

const spec = { work: 'restore', backup: { namespace: 'n', name: 'b', uid: 'ub' }, volume: 'v' }
const job = (status?: BackupJobStatus, isDeleting = false, uid = 'u') =>
  ({
    metadata: { name: 'j', uid, ...(isDeleting ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    spec,
    ...defined({ status }),
  }) as Parameters<typeof planBackupJob>[0] // the plan looks at nothing else
const course = (more: Partial<Course> = {}): ObservedJob => ({ course: { progress: {}, attempts: 0, ...more } })
const running = { state: 'running', bytesDone: 1 } as const
const known = (state: BytesEntry['state'], report?: BackupJobStatus, work = 'restore b v '): ObservedJob => ({
  known: { uid: 'u', state, at: '', job: { work, ...defined({ report }) } },
})
const done = { state: 'done', bytesDone: 7 } as const

test.each<[string, ReturnType<typeof job>, ObservedJob, readonly string[]]>([
  ['one that is new is begun', job(), {}, ['running', 'begin']],
  ['one that goes on is reported', job(running), course(), ['running']],
  ['one that is done', job(running), known('made', done), ['done']],
  ['one that was interrupted is begun again', job(running), known('making'), ['running', 'begin']],
  ['one that failed too often', job(running), known('made', { state: 'failed', detail: 'why' }), ['failed']],
  ['one that has ended is left alone', job({ state: 'failed' }), course(), []],
  ['one that is deleted is ended first', job(running, true), course(), ['end', 'running, removed']],
  ['one that is deleted before it was begun', job(undefined, true), {}, ['end', 'running, removed']],
  ['one that is removed', job({ ...running, isRemoved: true }, true), {}, []],
  ['an older object of one that was done', job(), known('removed', done), ['done']],
  ['another object for the same work', job(undefined, false, 'w'), known('removed', done), ['done']],
  [
    'another object for what could not be done',
    job(undefined, false, 'w'),
    known('removed', { state: 'failed', detail: 'why' }),
    ['running', 'begin'],
  ],
  ['an older object of one that was ended', job(), known('removed'), ['failed']],
  ['one whose disk has come back', job(undefined, false, 'w'), known('removed'), ['running', 'begin']],
  ['other work under a name', job(undefined, false, 'w'), known('made', done, 'write b v '), ['failed, NameTaken']],
  ['the end of that', job(undefined, true, 'w'), known('making', undefined, 'write b v '), ['running, removed']],
])('%s', (_which, object, observed, does) => {
  const summary = planBackupJob(object, observed).flatMap((action) => {
    if (action.do === 'effect') return [action.name]
    if (action.do !== 'status') return []
    // as it is on the wire, after what was there
    const written = BackupJob.status.parse(JSON.parse(JSON.stringify({ ...object.status, ...action.status })))
    const said = (action.conditions ?? []).map(({ type }) => `, ${type}`)
    return [written.state + (written.isRemoved === true ? ', removed' : '') + said.join('')]
  })
  expect(summary).toEqual(does)
})

test('a restore that was done is not done again for an older object of it', async () => {
  let runs = 0
  const reconciler = backupJobReconciler({
    work: { run: async () => ((runs += 1), { bytesDone: 7 }) } as unknown as BackupWork, // nothing else of it is called
    ledger: ledgerInMemory(),
    caches: undefined as never, // not used
    namespace: 'node-n1',
    clock: systemClock,
    log: silentLog,
  })
  const object = { metadata: { name: 'j', uid: 'u' }, spec } as Parameters<typeof reconciler.observe>[0]
  /** Until it has nothing to do but to report. */
  const reported = async (): Promise<unknown> => {
    for (;;) {
      const actions = planBackupJob(object, (await reconciler.observe(object, new Date())) as ObservedJob)
      const [effect] = actions.filter((action) => action.do === 'effect')
      if (effect !== undefined) await reconciler.effects?.[effect.name]?.(effect.input, object)
      const [status] = actions.filter((action) => action.do === 'status')
      if (status?.status['state'] === 'done') return status.status
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const first = await reported()
  await reconciler.effects?.['end']?.({}, object)
  expect([await reported(), runs]).toEqual([first, 1])
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
    ledger: ledgerInMemory(),
    caches: undefined as never, // not used
    namespace: 'node-n1',
    clock: { ...systemClock, sleep: async () => {} },
    log: silentLog,
  })
  const details: (string | undefined)[] = []
  const object = { metadata: { name: 'j' }, spec } as Parameters<typeof reconciler.observe>[0]
  const ended = new Promise<void>((resolve) => {
    reconciler.wakes?.(async () => {
      const [action] = planBackupJob(object, (await reconciler.observe(object, new Date())) as ObservedJob)
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
