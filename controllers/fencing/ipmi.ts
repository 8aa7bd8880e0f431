/** Power control by IPMI 2.0 over the network (RMCP+), through the program `ipmitool`. The password is passed in the
 *  environment, because every user of the machine can read arguments. */
import { execFile } from 'node:child_process'
import { environment } from '../../kit/sys/process.ts'
import { type Login, type PowerControl, PowerControlFailed } from './power-control.ts'

export interface IpmiOptions extends Pick<Login, 'username' | 'password'> {
  /** `host` or `host:port`; an IPv6 address in brackets. */
  readonly address: string
  /** The program, when it is not `ipmitool` on the path. */
  readonly program?: string
}

const PORT_DEFAULT = '623'
const ANSWER_MILLISECONDS_MAXIMUM = 30_000
/** Seconds between tries, and how many: a controller that works answers the first. */
const PATIENCE = ['-N', '2', '-R', '2']
const OUTPUT_BYTES_MAXIMUM = 65_536
const WORDS_LENGTH_MAXIMUM = 200

/** Throws PowerControlFailed when the address cannot be used. */
export function openIpmi({ address, username, password, program = 'ipmitool' }: IpmiOptions): PowerControl {
  const [, bracketed, plain, port = PORT_DEFAULT] =
    /^(?:\[([0-9a-f:]+)\]|([a-z0-9][-a-z0-9.]*))(?::(\d{1,5}))?$/i.exec(address) ?? []
  const host = bracketed ?? plain
  if (host === undefined) throw new PowerControlFailed(`${address} is not the address of a BMC.`)
  const chassisPower = (what: 'status' | 'off') =>
    run(
      program,
      ['-I', 'lanplus', ...PATIENCE, '-H', host, '-p', port, '-U', username, '-E', 'chassis', 'power', what],
      password,
    )
  const powerState = async () => (/^Chassis Power is off$/im.test(await chassisPower('status')) ? 'off' : 'on')
  return {
    powerState,
    async powerOff() {
      try {
        await chassisPower('off')
      } catch (error) {
        // Some controllers refuse to switch off a host that is off.
        if ((await powerState()) !== 'off') throw error
      }
    },
  }
}

function run(program: string, words: readonly string[], password: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { PATH: environment()['PATH'], LC_ALL: 'C', IPMI_PASSWORD: password }
    execFile(
      program,
      [...words],
      { env, timeout: ANSWER_MILLISECONDS_MAXIMUM, killSignal: 'SIGKILL', maxBuffer: OUTPUT_BYTES_MAXIMUM },
      (error, stdout, stderr) => {
        if (error === null) return resolve(stdout)
        // A missing program has the system's code; an exit has a number.
        const isMissing = error.code === ('ENOENT' as unknown)
        const reason = isMissing
          ? 'is not installed'
          : error.killed === true
            ? 'got no answer in time'
            : `failed: ${stderr.trim().slice(0, WORDS_LENGTH_MAXIMUM)}`
        reject(new PowerControlFailed(`${program} ${reason}`, { cause: error }))
      },
    )
  })
}
