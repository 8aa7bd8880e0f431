/** The gate of a host's guests with user-mode networking: a process that outlives the agent, as guests do. QEMU sends
 *  it every frame of a guest and continues with the frames that it gets back; without the gate a guest sends nothing.
 *  It reads names of guests as lines from a socket beside their folder, and answers each with a line when the guest is
 *  joined. It exits when neither an agent nor a guest is left. Argument: the folder of the guests; its parent is the
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
/** QEMU sends no longer frames. */
const FRAME_BYTES_MAXIMUM = 256 * 1024
/** Limit of the data on its way back to QEMU. Frames above it are dropped, as networks do. */
const WAITING_BYTES_MAXIMUM = 4 * 1024 * 1024
/** Time to wait for the first agent, and for the next one. */
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

/** Joins an existing interface; does nothing when it is joined. */
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
      // The guest has no such interface, or an agent of an earlier version started it.
      joined.delete(name)
    },
  )
  joined.set(name, joining)
  return joining
}

/** Connects the way back first, so that frames leave the guest only when they can come back. */
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

/** Passes on allowed frames. Each frame follows its length. */
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

const control = basename(gateSocket(folder)) // relative, because the full path may be too long for an address
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
