import { spawn } from 'node:child_process'
import { readdir, stat } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { GUEST_PROCESSES_MAXIMUM, guestCommand } from '../../../../hosting/processes/guests/machine.ts'
import { isRoot } from '../../../../kit/sys/process.ts'
import { until } from '../../../eventually.ts'

const USER = 1_099_999
const machine = {
  vcpus: 1,
  memoryMebibytes: 64,
  folder: '/',
  commandLine: '',
  hasKvm: false,
  userId: USER,
  ports: { api: 1, tunnel: 2 },
}
/** What comes before QEMU. */
const prefix = guestCommand(machine).slice(0, guestCommand(machine).indexOf('qemu-system-x86_64'))

async function processesOfUser(): Promise<number> {
  const owners = (await readdir('/proc'))
    .filter((name) => /^\d+$/.test(name))
    .map((name) =>
      stat(`/proc/${name}`).then(
        ({ uid }) => uid,
        () => -1,
      ),
    )
  return (await Promise.all(owners)).filter((uid) => uid === USER).length
}

test('a guest has no more processes of the host than it may, however many connections it opens', async () => {
  if (!isRoot()) return
  const more = GUEST_PROCESSES_MAXIMUM + 64
  const script = `for each in $(seq ${more}); do sleep 60 2>/dev/null & done; exec sleep 60`
  const [program, ...words] = [...prefix.slice(prefix.indexOf('prlimit')), 'sh', '-c', script]
  const child = spawn(program, words, { stdio: 'ignore' })
  try {
    const count = await until('all that it may have', processesOfUser, (found) => found >= GUEST_PROCESSES_MAXIMUM - 2)
    expect(count).toBeLessThanOrEqual(GUEST_PROCESSES_MAXIMUM)
  } finally {
    child.kill('SIGKILL')
    await endProcessesOfUser()
  }
})

async function endProcessesOfUser(): Promise<void> {
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const owner = await stat(`/proc/${name}`).catch(() => undefined)
    if (owner?.uid === USER) process.kill(Number(name), 'SIGKILL')
  }
}
