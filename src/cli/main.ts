#!/usr/bin/env node
import { main } from './program.ts';
import { exitOnBug, exitOnFailedOutput } from './streams.ts';

exitOnBug();
exitOnFailedOutput();
void main(process.argv);
