/** Processor time of processes, as Linux reports it in /proc. */
import { readFile } from 'node:fs/promises'

const TICK_MICROSECONDS = 10_000

/** Of all of them, in microseconds; zero for those that have ended. */
export async function processorMicrosecondsOf(pids: readonly number[]): Promise<number> {
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')))
  const fields = lines.map((line) => line.slice(line.lastIndexOf(')')).split(' '))
  return (
    TICK_MICROSECONDS * fields.reduce((sum, { 12: user = 0, 13: system = 0 }) => sum + Number(user) + Number(system), 0)
  )
}
