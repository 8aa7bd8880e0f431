/** Sending a small form: busy, refused, done. */
import { type FormEvent, useState } from 'react'
import { Refusal } from '../api/refusal.ts'
import { focusFirstFault } from '../ui/faults.ts'

export interface Submission {
  readonly isBusy: boolean
  readonly refusal: Refusal | undefined
  readonly onSubmit: (event: FormEvent) => void
}

export function useSubmission(send: () => Promise<void>): Submission {
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const run = async (form: HTMLElement): Promise<void> => {
    setBusy(true)
    setRefusal(undefined)
    try {
      await send()
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      setRefusal(error)
      // once the fields say what is wrong
      requestAnimationFrame(() => void focusFirstFault(form))
    } finally {
      setBusy(false)
    }
  }
  return {
    isBusy,
    refusal,
    onSubmit: (event) => {
      event.preventDefault()
      const { currentTarget: form } = event
      if (!isBusy && form instanceof HTMLElement) void run(form)
    },
  }
}
