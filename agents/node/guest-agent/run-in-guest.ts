/** Runs a program in a guest by its agent, without any network. What it answers belongs to the guest: it is bounded
 *  here, and to be checked by the caller. */
import { z } from 'zod'
import { GuestAgentFailed, type GuestAgentOptions, openGuestAgent } from './channel.ts'

export interface GuestProgram {
  /** Absolute path in the guest. */
  readonly path: string
  /** What it reads. */
  readonly input: Buffer
}

/** How often it is asked whether the program has ended: less and less, because the answer costs the guest as well. */
const POLL = { firstMilliseconds: 100, growth: 1.5, mostMilliseconds: 1_000 } as const
const ERROR_CHARACTERS_MAXIMUM = 300

const Started = z.looseObject({ pid: z.int() })
const Status = z.looseObject({
  exited: z.boolean(),
  exitcode: z.int().optional(),
  'out-data': z.string().optional(),
  'err-data': z.string().optional(),
})

/** What the program has written when it ends with 0. GuestAgentFailed when it ends otherwise, or not in time, and when
 *  the agent does not answer. */
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
