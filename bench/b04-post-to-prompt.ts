/** From POST /v1/servers to the guest's prompt, on the running product with real QEMU, against the same QEMU command
 *  run by hand: the difference is the cost of the control plane. Each run is one guest, so the unit is a boot. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { copyFile, mkdtemp, readFile, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runProgram } from '../agents/node/run-program.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { signalProcess } from '../kit/sys/process.ts'
import { Customer } from '../test/e2e/customer.ts'
import { eventually } from '../test/eventually.ts'
import { clearAway, guestsOf, Product } from '../test/e2e/product.ts'
import { type Bench, median } from './runner.ts'
import { UNREAD } from '../test/e2e/warnings.ts'

const OVERHEAD = 'overhead in milliseconds, median'
const PROMPT = 'root@bench'
const BOOT_MILLISECONDS = 120_000
const POLL_MILLISECONDS = 5

export const bench: Bench = {
  name: 'B04 POST to prompt',
  question: 'one tiny-linux server from the request to its prompt',
  subjectName: 'svccloud',
  peerName: 'the same QEMU command by hand',
  unit: 'boots',
  goal: 0.9,
  limits: { [OVERHEAD]: 150 },
  heldBy:
    'about twenty durable writes of Kubernetes and PostgreSQL lie one after the other between the request and the ' +
    "agent's start of QEMU, and then the disk and the seed of the guest are made.",
  tier: 'e2e',
  async open() {
    const folder = await mkdtemp(join(tmpdir(), 'svccloud-bench-'))
    const product = await Product.start({
      data: join(folder, 'data'),
      flags: ['--hypervisor', 'qemu', '--nodes', 'eu-1a=1'],
      warnings: UNREAD,
    })
    const customer = await Customer.signUp(() => product, 'bench@example.com')
    await customer.addSshKey()
    const [subjects, peers]: [number[], number[]] = [[], []]
    let command: { readonly binary: string; readonly input: readonly string[]; readonly folder: string } | undefined
    let number = 0

    async function bootByRequest(): Promise<number> {
      const startedAt = clock.monotonicMilliseconds()
      const { server } = await customer.createServer({
        zone: 'eu-1a',
        hostname: `bench-${number++}`,
        plan: 'tiny',
        template: 'tiny-linux',
      })
      const pid = await eventually('the guest', async () => (await guestsOf(product.data))[0], BOOT_MILLISECONDS)
      const home = await readlink(`/proc/${pid}/cwd`)
      await prompt(join(home, 'console.log'))
      const taken = clock.monotonicMilliseconds() - startedAt
      if (command === undefined) {
        const [binary = '', ...named] = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').slice(0, -1)
        const input = await Promise.all(named.map((text) => withoutDescriptors(text, pid)))
        await copyFile(join(home, 'seed.iso'), join(folder, 'seed.iso'))
        command = { binary, input, folder: home }
      }
      await customer.finished((await customer.change('DELETE', `/v1/servers/${server.id}`)).id)
      return taken
    }

    /** In a separate folder, with a fresh disk of the same kind and no forwarded port. */
    async function bootByHand(): Promise<number> {
      if (command === undefined) throw new Error('no guest has been seen yet')
      const home = await mkdtemp(join(folder, 'hand-'))
      await copyFile(join(folder, 'seed.iso'), join(home, 'seed.iso'))
      const disk = join(home, 'disk.qcow2')
      await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', disk, '1G'], { timeoutMilliseconds: 30_000 })
      const input = command.input.map((text) =>
        text.replace(/"filename":"[^"]*\.qcow2"/, `"filename":${JSON.stringify(disk)}`).replace(/,hostfwd=[^,]*/, ''),
      )
      const startedAt = clock.monotonicMilliseconds()
      // As the agent starts it: the serial line is QEMU's standard output, and that is a file.
      const printed = openSync(join(home, 'console.log'), 'a')
      const child: ChildProcess = spawn(command.binary, input, { cwd: home, stdio: ['pipe', printed, 'ignore'] })
      closeSync(printed)
      try {
        await prompt(join(home, 'console.log'))
        return clock.monotonicMilliseconds() - startedAt
      } finally {
        if (child.pid !== undefined) signalProcess(child.pid, 'SIGKILL')
        await new Promise((resolve) =>
          child.exitCode === null && child.signalCode === null ? child.once('exit', resolve) : resolve(undefined),
        )
        await rm(home, { recursive: true, force: true })
      }
    }

    return {
      subject: { run: () => timed(bootByRequest, subjects) },
      peer: { run: () => timed(bootByHand, peers) },
      facts: () => ({
        [OVERHEAD]: Math.round(median(subjects) - median(peers)),
        'boot by hand': Math.round(median(peers)),
      }),
      async close() {
        await clearAway(product, folder)
      },
    }
  },
}

/** Replaces the inherited descriptors of folders in the guest's process with their names. */
async function withoutDescriptors(text: string, pid: number): Promise<string> {
  const [inherited, file] = /\/proc\/self\/fd\/(\d+)/.exec(text) ?? []
  return inherited === undefined ? text : text.replace(inherited, await readlink(`/proc/${pid}/fd/${file}`))
}

async function timed(boot: () => Promise<number>, kept: number[]): Promise<{ units: number; seconds: number }> {
  const milliseconds = await boot()
  kept.push(milliseconds)
  return { units: 1, seconds: milliseconds / 1000 }
}

async function prompt(file: string): Promise<void> {
  const until = clock.monotonicMilliseconds() + BOOT_MILLISECONDS
  while (!(await readFile(file, 'latin1').catch(() => '')).includes(PROMPT)) {
    if (clock.monotonicMilliseconds() > until) throw new Error(`no prompt in ${file}`)
    await clock.sleep(POLL_MILLISECONDS)
  }
}
