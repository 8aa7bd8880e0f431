/** Checks whether this machine can have a network for servers, and reports to people what is missing. */
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { promisify } from 'node:util'
import { environment } from '../../kit/sys/process.ts'
import { findPrograms, lastLineOf, type ProgramNeeds, type Programs } from './programs.ts'
import { NEW_SPACE } from './space.ts'

const run = promisify(execFile)

const TUN = '/dev/net/tun'

/** Required rights and kernel features, tried in a temporary namespace. */
const TRIAL = [
  'ip link set lo up',
  'ip link add one type veth peer name two',
  'ip link add bridge type bridge',
  'ip tuntap add tap mode tap',
  'echo 1 > /proc/sys/net/ipv4/ip_forward',
  'nft \'table ip nat { chain post { type nat hook postrouting priority 100; oifname "x" masquerade; }; }\'',
]
const TRIAL_MILLISECONDS = 20_000

/** The programs of the network if it is possible, otherwise the reason: half a sentence for people. Nothing is
 *  downloaded for a machine that cannot use it. */
export async function probeNetwork(needs: ProgramNeeds): Promise<Programs | string> {
  const obstacle = (await tunObstacle()) ?? (await trialObstacle(['true'], environment()['PATH']))
  if (obstacle !== undefined) return obstacle
  const programs = await findPrograms(needs)
  if (typeof programs === 'string') return programs
  return (await trialObstacle(TRIAL, programs.path)) ?? programs
}

async function tunObstacle(): Promise<string | undefined> {
  try {
    await access(TUN, constants.R_OK | constants.W_OK)
    return undefined
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code !== 'ENOENT' // access throws errno errors only
    return isThere
      ? `${TUN} is not open to this user (as root: chmod 666 ${TUN})`
      : `there is no ${TUN} (in a container: give it the device and the right to use it)`
  }
}

async function trialObstacle(lines: readonly string[], path: string | undefined): Promise<string | undefined> {
  const [program, ...words] = [...NEW_SPACE, 'sh', '-ec', lines.join('\n')]
  try {
    await run(program ?? '', words, { timeout: TRIAL_MILLISECONDS, env: { PATH: path, LC_ALL: 'C' } })
    return undefined
  } catch (error) {
    return `the kernel does not let this user have its own network namespaces (${lastLineOf(error)})`
  }
}
