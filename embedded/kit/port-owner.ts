/** Finds the process that listens on a port of this machine or holds it, as far as this user may see. */
import { readdir, readFile, readlink } from 'node:fs/promises'

const LISTENING = '0A'
const BOUND = '07'

/** `name (process id)`; undefined when the system does not report it. */
export async function ownerOfPort(port: number): Promise<string | undefined> {
  const listening = await Promise.all(['tcp', 'tcp6'].map((table) => socketsAt(table, LISTENING, port)))
  const sockets = new Set(listening.flat())
  if (sockets.size === 0) for (const socket of await socketsAt('udp', BOUND, port)) sockets.add(socket)
  if (sockets.size === 0) return undefined
  const processes = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  for (const id of processes)
    if (await holdsOne(id, sockets)) {
      const name = await readFile(`/proc/${id}/comm`, 'utf8').catch(() => 'a program')
      return `${name.trim()} (process ${id})`
    }
  return undefined
}

/** Sockets with the port in a table of the kernel, as they appear in descriptors of processes. */
async function socketsAt(table: string, wantedState: string, port: number): Promise<readonly string[]> {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0')
  const text = await readFile(`/proc/net/${table}`, 'utf8').catch(() => '')
  return text
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(`:${wanted}`) === true && state === wantedState)
    .map((fields) => `socket:[${fields[9]}]`)
}

async function holdsOne(id: string, sockets: ReadonlySet<string>): Promise<boolean> {
  const files = await readdir(`/proc/${id}/fd`).catch(() => [])
  for (const file of files) if (sockets.has(await readlink(`/proc/${id}/fd/${file}`).catch(() => ''))) return true
  return false
}
