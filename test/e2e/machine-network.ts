/** What a start of the product does to the machine's own network, and which processes of its network are there. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readlink } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const SILENCE_MILLISECONDS = 20_000

/** The machine's own network: interfaces, routes and rules. */
export const machineNetwork = async (): Promise<string> =>
  (
    await Promise.all(
      [
        ['ip', '-brief', 'link'],
        ['ip', 'route', 'show', 'table', 'all'],
        ['ip', '-6', 'route', 'show', 'table', 'all'],
        ['nft', 'list', 'ruleset'],
      ].map(async ([program = '', ...words]) => (await run(program, words)).stdout),
    )
  ).join('\n')

/** Processes of the network: they work in its folder. */
export async function networkProcesses(data: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const places = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => '')))
  return pids.filter((_pid, index) => places[index]?.startsWith(join(data, 'network')))
}

/** What an SSH server says first. Rejects when it hangs up, or says nothing for long. */
export async function bannerAt(host: string, port = 22): Promise<string> {
  const socket = connect({ host, port })
  const over = new AbortController()
  socket.once('close', () => over.abort(new Error(`${host} says nothing`)))
  socket.setTimeout(SILENCE_MILLISECONDS, () => socket.destroy())
  const [banner] = (await once(socket, 'data', { signal: over.signal })) as [Buffer]
  socket.destroy()
  return banner.toString()
}

/** Address and port of the loopback in a command to sign in. */
export function twinIn(command: string): readonly [string, number] {
  const [, port = '22', host] = /^ssh (?:-p (\d+) )?root@(127\.\d+\.\d+\.\d+)$/.exec(command) ?? []
  if (host === undefined) throw new Error(`${command} names no address of the loopback`)
  return [host, Number(port)]
}
