/** The gate of a host's guests with user-mode networking: a process that outlives the agent as guests do. QEMU hands it
 *  every frame that a guest sends and goes on with those that it gets back; without the gate a guest sends nothing.
 *  Takes names of guests as lines at a socket beside their folder, and answers each with a line when the guest is
 *  joined. Ends when neither an agent nor a guest is left. Argument: the folder of the guests; the one above is its
 *  working directory. */
import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { basename, join } from 'node:path'
import { forEachLine } from '../../../../../kit/http/bounded.ts'
import { systemClock as clock } from '../../../../../kit/sys/clock.ts'
import { exitProcess, processArguments } from '../../../../../kit/sys/process.ts'
import { connectLocalSocket } from '../../hypervisor/local-socket.ts'
import { GUEST_NAME_BYTES_MAXIMUM, INTERFACES_MAXIMUM, gateFiles, gateSocket } from '../user-mode.ts'
import { comparable, mayLeave } from './frames.ts'

const ADDRESSES_MILLISECONDS = 1_000
const LENGTH_BYTES = 4
/** QEMU sends none that are longer. */
const FRAME_BYTES_MAXIMUM = 256 * 1024
/** What is on its way back to QEMU at most: more is dropped, as networks do. */
const WAITING_BYTES_MAXIMUM = 4 * 1024 * 1024
/** For the first agent to come, and for the next one. */
const IDLE_MILLISECONDS = 10_000

const [folder = ''] = processArguments()
const joined = new Map<string, Promise<void>>()
const agents = new Set<Socket>()

let local = new Set<string>()
let readAt = Number.NEGATIVE_INFINITY
const isLocal = (address: string): boolean => {
  const now = clock.monotonicMilliseconds()
  if (now - readAt > ADDRESSES_MILLISECONDS) {
    const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
    local = new Set(all.map((own) => comparable(own.address)))
    readAt = now
  }
  return local.has(address)
}

/** Joins an interface that is there; free when it is joined. */
function joinInterface(guest: string, index: number): Promise<void> {
  const name = `${guest}/${index}`
  const known = joined.get(name)
  if (known !== undefined) return known
  const joining = connectBoth(guest, index).then(
    ({ leaving, passed }) => {
      const end = () => {
        leaving.destroy()
        passed.destroy()
        if (joined.get(name) === joining) joined.delete(name)
        endWhenIdle()
      }
      for (const socket of [leaving, passed]) socket.on('error', end).on('close', end)
      passed.resume()
      leaving.on('data', passOn(passed, end))
    },
    () => {
      // The guest has no such interface, or was started by an agent of before.
      joined.delete(name)
    },
  )
  joined.set(name, joining)
  return joining
}

/** Frames leave the guest only when they can come back. */
async function connectBoth(guest: string, index: number): Promise<{ leaving: Socket; passed: Socket }> {
  const files = gateFiles(index)
  const passed = await connectLocalSocket(join(folder, guest, files.passed))
  try {
    return { passed, leaving: await connectLocalSocket(join(folder, guest, files.leaving)) }
  } catch (error) {
    passed.destroy()
    throw error
  }
}

/** Each frame follows its length. */
function passOn(passed: Socket, end: () => void): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  return (bytes) => {
    const all = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
    const allowed: Buffer[] = []
    let at = 0
    while (all.length - at >= LENGTH_BYTES) {
      const length = all.readUInt32BE(at)
      if (length > FRAME_BYTES_MAXIMUM) return end()
      const next = at + LENGTH_BYTES + length
      if (next > all.length) break
      if (mayLeave(all.subarray(at + LENGTH_BYTES, next), isLocal)) allowed.push(all.subarray(at, next))
      at = next
    }
    rest = all.subarray(at)
    if (allowed.length > 0 && passed.writableLength < WAITING_BYTES_MAXIMUM) passed.write(Buffer.concat(allowed))
  }
}

const endWhenIdle = () =>
  void clock.after(IDLE_MILLISECONDS, () => {
    if (agents.size === 0 && joined.size === 0) exitProcess(0)
  })

const control = basename(gateSocket(folder)) // the whole path may be longer than an address may be
const server = createServer((agent) => {
  agents.add(agent)
  agent.on('close', () => {
    agents.delete(agent)
    endWhenIdle()
  })
  void forEachLine(agent, GUEST_NAME_BYTES_MAXIMUM, (guest) => {
    const interfaces = Array.from({ length: INTERFACES_MAXIMUM }, (_, index) => joinInterface(guest, index))
    void Promise.all(interfaces).then(() => agent.write(`${guest}\n`))
  })
})
rmSync(control, { force: true })
server.listen(control)
endWhenIdle()
