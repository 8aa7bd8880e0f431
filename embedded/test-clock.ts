/** The clock of a test cloud: its offset from the machine's clock. It only moves forward, because nothing in the data
 *  folder may be in the future. */
import { z } from 'zod'
import { readIfThere, writeDurably } from '../kit/sys/durable-file.ts'
import { StartRefused } from './kit/data-folder.ts'
import type { TestClock } from './options.ts'

const Stored = z.strictObject({ ahead_milliseconds: z.int().min(0) })

/** Milliseconds by which the components' clocks are ahead from now on; stored in the file. Throws StartRefused for a
 *  time that has passed. `now` is the machine's time. */
export async function setTestClock(file: string, wanted: TestClock | undefined, now: Date): Promise<number> {
  const before = await readAhead(file)
  if (wanted === undefined) return before
  const ahead = 'at' in wanted ? wanted.at.getTime() - now.getTime() : before + wanted.laterMilliseconds
  if (ahead < before)
    throw new StartRefused(
      `The clock of this cloud does not go back: it is ${new Date(now.getTime() + before).toISOString()} there. ` +
        'Choose a later time, or another data folder: npm start -- --data DIR',
    )
  await writeDurably(file, JSON.stringify({ ahead_milliseconds: ahead } satisfies z.infer<typeof Stored>))
  return ahead
}

async function readAhead(file: string): Promise<number> {
  const text = await readIfThere(file)
  return text === undefined ? 0 : Stored.parse(JSON.parse(text)).ahead_milliseconds
}
