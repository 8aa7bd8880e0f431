/** How many more seeds a file of the tier `seeds` runs beside those that it always does. What is counted is processor
 *  time: seconds of the clock would say who else uses the machine. */
import { cpuSeconds } from '../../kit/sys/process.ts'

/** Answers whether anything is left of so many seconds of this process and its threads, from now on. */
export function openBudget(seconds: number): () => boolean {
  const end = cpuSeconds() + seconds
  return () => cpuSeconds() < end
}
