/** A database restored to its last moment, from the document until it is healthy, against pgBackRest that only copies
 *  the same base backup: the difference is replaying later writes, and the start of the server. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runProgram } from '../agents/node/run-program.ts'
import { passwordChange } from '../test/agents/node/images/database-machine.ts'
import { timed } from './backups.ts'
import { openArchivedMachine, runAsPostgres, whenArchived, whenHealthy } from './databases.ts'
import type { Bench } from './runner.ts'

const MEBIBYTES = { full: 256, short: 4 }
/** Content of each row, incompressible. */
const ROW_BYTES = 8_192
const PAIRS = 5

export const bench: Bench = {
  name: 'B73 database restore',
  question: 'a database restored to its last moment, on this host without a guest',
  subjectName: 'the machine of a database',
  peerName: 'the copy of its base backup alone',
  unit: 'MiB',
  goal: 0.5,
  pairs: PAIRS,
  tier: 'e2e',
  program: 'pgbackrest',
  async open(round) {
    const mebibytes = MEBIBYTES[round]
    // Restore points are created early, so that the benchmark need not wait for them.
    const managed = await openArchivedMachine({ settings: { MACHINE_POINT_SECONDS: '2', MACHINE_KEEP_SECONDS: '0.3' } })
    const { machine, repository } = managed
    const taken: number[] = []
    const current = join(machine.folder, 'var/lib/svccloud/current')
    try {
      await machine.query('create table filled (bytes bytea)')
      await machine.query('alter table filled alter column bytes set storage external')
      await machine.query(
        `insert into filled select string_agg(sha512((g * 128 + n)::text::bytea), ''::bytea)
           from generate_series(1, $1) g, generate_series(1, ${ROW_BYTES / 64}) n group by g`,
        [(mebibytes * 1024 ** 2) / ROW_BYTES],
      )
      // A base backup of it, like its daily one.
      await runAsPostgres('pgbackrest', `--config=${current}/archive.conf`, '--stanza=main', '--type=full', 'backup')
      const { latestAt: before } = await whenArchived(machine, ({ latestAt }) => latestAt !== null)
      await machine.query('create table since (row int)')
      const { latestAt } = await whenArchived(machine, (report) => (report.latestAt ?? '') > (before ?? ''))
      return {
        subject: {
          async run() {
            const restored = await managed.open()
            const seconds = await timed(async () => {
              await restored.tell({ ...passwordChange(5), restore: { repository, targetTime: latestAt } })
              await whenHealthy(restored)
            })
            await restored.query('select count(*) from filled')
            await restored.close()
            taken.push(seconds)
            return { units: mebibytes, seconds }
          },
        },
        peer: {
          async run() {
            const folder = await mkdtemp(join(tmpdir(), 'svccloud-bench-'))
            await runProgram('chown', ['postgres:', folder])
            const place = [`--pg1-path=${folder}`, '--type=none', '--process-max=2', 'restore']
            const seconds = await timed(() =>
              runAsPostgres('pgbackrest', `--config=${current}/archive.conf`, '--stanza=main', ...place),
            )
            await rm(folder, { recursive: true, force: true })
            return { units: mebibytes, seconds }
          },
        },
        facts: () => ({ 'seconds of a restore, most': Math.max(...taken).toFixed(1) }),
        close: managed.close,
      }
    } catch (error) {
      await managed.close()
      throw error
    }
  },
}
