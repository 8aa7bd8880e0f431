/** Sending a small form: busy, refused, done. */
import { type FormEvent, useEffect, useRef, useState } from 'react'
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
  const form = useRef<HTMLElement>(undefined)
  // once the fields say what is wrong
  useEffect(() => void (refusal === undefined || focusFirstFault(form.current)), [refusal])
  const run = async (): Promise<void> => {
    setBusy(true)
    setRefusal(undefined)
    try {
      await send()
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      setRefusal(error)
    } finally {
      setBusy(false)
    }
  }
  return {
    isBusy,
    refusal,
    onSubmit: (event) => {
      event.preventDefault()
      if (event.currentTarget instanceof HTMLElement) form.current = event.currentTarget
      if (!isBusy) void run()
    },
  }
}
