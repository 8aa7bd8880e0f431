/** Real guests on the hosts of an OVN world, each host a separate process (`ovn-host.ts`). */
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { nodeBinary, signalProcess } from '../../../../kit/sys/process.ts'
import { asLineProcess } from './line-process.ts'
import { type HostName, HOSTS, type OvnWorld } from './ovn-world.ts'
import type { Orders } from './ovn-host.ts'

export const addressOf = (host: HostName): string => `192.0.2.${HOSTS.indexOf(host) + 1}`

export interface GuestHost {
  /** Throws what the host refuses. */
  order<Order extends keyof Orders>(what: Order, name: string, order: Orders[Order]): Promise<unknown>
  /** What the guest's shell printed for the command. */
  shell(name: string, command: string): Promise<string>
  /** Kills the process that is the namespace of the metadata service. */
  killNamespace(): Promise<void>
  /** Ends the host and every guest on it. */
  close(): Promise<void>
}

const execute = promisify(execFile)
const PATIENCE_MILLISECONDS = 90_000
const PROMPT = '~# '

export async function openGuestHost(
  world: OvnWorld,
  host: HostName,
  zone: string,
  network: 'ovn' | 'outbound' = 'ovn',
): Promise<GuestHost> {
  const folder = join(world.folder, `agent-${host}`)
  await mkdir(folder)
  const lines = asLineProcess(
    world.start(host, nodeBinary(), join(import.meta.dirname, 'ovn-host.ts'), folder, addressOf(host), zone, network),
    host,
  )
  let marks = 0

  const order = <Order extends keyof Orders>(what: Order, name: string, more: Orders[Order]): Promise<unknown> =>
    lines.order({ ...more, do: what, name })
  const textOf = async (name: string) => String(await order('console', name, {})).replaceAll('\r', '')

  /** A guest that has come from elsewhere has said nothing here yet. */
  async function prompted(name: string): Promise<string> {
    const text = await textOf(name)
    if (!text.includes(PROMPT)) await order('type', name, { text: '\n' })
    return text
  }

  return {
    order,
    async shell(name, command) {
      await expect
        .poll(() => prompted(name), { timeout: PATIENCE_MILLISECONDS, interval: 200, message: `${name} has booted` })
        .toContain(PROMPT)
      const mark = ++marks
      // The shell repeats what is typed: only what it prints has the sum in it.
      await order('type', name, { text: `echo begin-$((${mark}+0)); ${command}; echo end-$((${mark}+0))\n` })
      const printed = new RegExp(`begin-${mark}\n([^]*?)end-${mark}\n`)
      await expect
        .poll(() => textOf(name), {
          timeout: PATIENCE_MILLISECONDS,
          interval: 200,
          message: `${name} has done ${command}`,
        })
        .toMatch(printed)
      return printed.exec(await textOf(name))?.[1] ?? ''
    },
    async killNamespace() {
      const { stdout } = await execute('pgrep', ['-P', String(lines.pid), '-f', 'metadata-namespace.ts'])
      for (const pid of stdout.trim().split('\n')) signalProcess(Number(pid), 'SIGKILL')
    },
    async close() {
      const guests = join(folder, 'guests')
      for (const guest of await readdir(guests).catch(() => [])) {
        const pid = Number(await readFile(join(guests, guest, 'qemu.pid'), 'utf8').catch(() => '0'))
        if (pid > 0) signalProcess(pid, 'SIGKILL')
      }
      await lines.close()
    },
  }
}
