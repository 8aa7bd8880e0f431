/** What a host of control planes and the process that reads for one of them say to each other: texts of JSON. The host
 *  believes nothing of what it is answered before it has looked at it. */
import { z } from 'zod'
import { RefusalReason } from '../../../integrations/control-planes/calls.ts'

/** Of an answer: what all nodes and pods of a cluster need and have is the longest. */
export const ANSWER_BYTES_MAXIMUM = 16 * 1024 ** 2
/** Of a question, which this host asks. */
export const QUESTION_BYTES_MAXIMUM = 8 * 1024 ** 2
const DETAIL_LETTERS_MAXIMUM = 1_000

export const Question = z.object({ id: z.int(), task: z.string(), words: z.array(z.unknown()) })
export type Question = z.infer<typeof Question>

export const Answer = z.object({
  id: z.int(),
  /** Absent where it answers nothing, and where it failed. */
  value: z.unknown().optional(),
  /** Why it failed, for people; `refusal` where it was refused. */
  failure: z.object({ detail: z.string().max(DETAIL_LETTERS_MAXIMUM), refusal: RefusalReason.optional() }).optional(),
})
export type Answer = z.infer<typeof Answer>

export const shortened = (text: string): string => text.slice(0, DETAIL_LETTERS_MAXIMUM)
