/** Runs a program in a guest through its agent, without a network. The output comes from the guest: its size is limited
 *  here, and the caller must check its content. */
import { z } from 'zod'
import { GuestAgentFailed, type GuestAgentOptions, openGuestAgent } from './channel.ts'

export interface GuestProgram {
  /** Absolute path in the guest. */
  readonly path: string
  /** Its standard input. */
  readonly input: Buffer
}

/** Intervals between polls for the program's exit. They grow, because each poll also costs the guest time. */
const POLL = { firstMilliseconds: 100, growth: 1.5, mostMilliseconds: 1_000 } as const
const ERROR_CHARACTERS_MAXIMUM = 300

const Started = z.looseObject({ pid: z.int() })
const Status = z.looseObject({
  exited: z.boolean(),
  exitcode: z.int().optional(),
  'out-data': z.string().optional(),
  'err-data': z.string().optional(),
})

/** The program's output when it exits with 0. GuestAgentFailed when it exits otherwise or not in time, or when the
 *  agent does not answer. */
export async function runInGuest(options: GuestAgentOptions, { path, input }: GuestProgram): Promise<Buffer> {
  const agent = await openGuestAgent(options)
  try {
    const started = Started.safeParse(
      await agent.execute('guest-exec', { path, 'input-data': input.toString('base64'), 'capture-output': true }),
    ).data
    if (started === undefined) throw new GuestAgentFailed('the guest agent started nothing')
    for (let pause: number = POLL.firstMilliseconds; ; pause = Math.min(pause * POLL.growth, POLL.mostMilliseconds)) {
      const status = Status.safeParse(await agent.execute('guest-exec-status', { pid: started.pid })).data
      if (status === undefined) throw new GuestAgentFailed('the guest agent answers something else')
      if (status.exited) return outputOf(path, status)
      await options.clock.sleep(pause)
    }
  } finally {
    agent.close()
  }
}

function outputOf(path: string, status: z.infer<typeof Status>): Buffer {
  const decode = (text = '') => Buffer.from(text, 'base64')
  if (status.exitcode === 0) return decode(status['out-data'])
  const why = decode(status['err-data']).toString().slice(-ERROR_CHARACTERS_MAXIMUM)
  throw new GuestAgentFailed(`${path} ended with ${status.exitcode ?? 'a signal'}: ${why}`)
}
