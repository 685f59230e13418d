/** The model knows of the wire. */
import { answer } from '../http/answer.ts';

export const job = answer;
